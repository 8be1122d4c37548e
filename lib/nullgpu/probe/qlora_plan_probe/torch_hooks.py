"""What is put into place once the program has imported torch."""
import sys

from . import _divided, ending, imports, library


def install(request, recorder):
    imports.problems.append(lambda text: recorder.write("problem", message="the probe could not hook " + text))
    imports.after_import("torch", lambda torch: _with_torch(torch, request, recorder))
    if request.plays_rank:
        from . import ranks

        ranks.set_environment(request)
    else:
        from . import launchers

        launchers.meet_other_ranks()


def _with_torch(torch, request, recorder):
    rank, world_size = ending.rank_of_process()
    recorder.write("torch", argv=_command_line(), version=str(torch.__version__), cuda=torch.version.cuda or "",
                   hip=getattr(torch.version, "hip", None) or "", rank=rank, world_size=world_size)
    if torch.version.cuda is None or not library.present():
        return  # the command says what is wrong
    from . import answers, launchers, phases, ranks

    deterministic = sys.modules.get("torch.utils.deterministic")  # since 2.2
    if deterministic is not None:
        deterministic.fill_uninitialized_memory = False  # with NaN, over which no kernel writes here
    launchers.install(request)
    if request.plays_rank:
        ranks.install(request)
    given = answers.Answers(request, recorder)
    given.install(request.plays_rank)
    marks = phases.Phases(request, recorder)
    marks.install()
    marks.on_close.append(given.phase_over)
    _divided.append(marks)
    parts = [given]
    if request.inventory or request.snapshot:
        from . import history

        parts.append(history.History(request, recorder))
        parts[-1].install(marks)
    ending.install(recorder, marks, parts, request.plays_rank)


def _command_line():
    return list(getattr(sys, "orig_argv", [])) or list(sys.argv)

