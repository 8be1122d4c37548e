#include "report/table.h"

#include <algorithm>

#include "base/text.h"
#include "estimate/ledger.h"
#include "estimate/outside_terms.h"
#include "plan/job_names.h"
#include "plan/mistakes.h"
#include "report/format.h"
#include "report/ledger_text.h"

namespace qlp {
namespace {

bool searched_required(const Report& report) {
  return std::ranges::any_of(report.plans, [](const PlanReport& plan) {
    return !plan.ranks.empty() && plan.ranks.front().peak.required_device;
  });
}

Cell verdict_cell(const PlanReport& plan) {
  if (!plan.applicable()) return {"cannot run", Color::faint};
  if (!plan.fits) return {"does not fit", Color::bad};
  return {plan.cache_given_back ? "fits, tightly" : "fits", Color::good};
}

std::string rows(const Report& report, const TableOptions& options) {
  const bool required = searched_required(report);
  std::vector<std::string> headings{"plan", "verdict", "peak phase", "allocated GiB", "reserved GiB", "device GiB"};
  if (required) headings.emplace_back("required GiB");
  headings.emplace_back("headroom GiB");
  headings.emplace_back("host GiB");
  const bool timed =
      std::ranges::any_of(report.plans, [](const PlanReport& plan) { return plan.step_time.has_value(); });
  if (timed) headings.emplace_back("sent GiB");
  if (timed) headings.emplace_back("step s >=");
  TextTable table{headings, 3};
  for (const PlanReport* plan : best_first(report)) {
    const bool best = report.recommended == plan->plan.name;
    std::vector<Cell> row{{plan->plan.name, best ? Color::strong : Color::plain}, verdict_cell(*plan)};
    if (plan->applicable() && !plan->ranks.empty()) {
      const PeakReport& peak = plan->ranks.front().peak;
      row.push_back({peak.phase});
      row.push_back({gib(peak.figures.allocated)});
      row.push_back({gib(peak.reserved_here())});
      row.push_back({gib(peak.device_used)});
      if (required) row.push_back({peak.required_device ? gib(*peak.required_device) : ""});
      row.push_back({gib(peak.headroom), peak.headroom < ByteDelta{} ? Color::bad : Color::plain});
      row.push_back({plan->host ? gib(plan->host->per_node) : ""});
      if (plan->step_time) row.push_back({gib(plan->communication.sent)});
      if (plan->step_time) row.push_back({three_digits(plan->step_time->lower_bound)});
    }
    table.add(std::move(row));
  }
  return table.text(options.colors);
}

std::string diagnostic_line(std::string_view about, const Diagnostic& d) {
  std::string text;
  if (!about.empty()) text += std::string{about} + ": ";
  if (!d.key_path.empty()) text += d.key_path + ": ";
  text += d.message;
  if (!d.hint.empty()) text += "; " + d.hint;
  return wrapped(harmless(text, "\n"), 2) + "\n";
}

std::string recommendation(const Report& report, bool colors) {
  if (!report.recommended) return colored("nothing fits", Color::bad, colors) + "\n";
  std::string text = "recommended: " + colored(*report.recommended, Color::strong, colors);
  if (report.resources) {
    const Resources& need = *report.resources;
    text += " on " + std::to_string(need.gpus) + (need.gpus == 1 ? " GPU" : " GPUs");
    if (need.nodes > 1) text += " of " + std::to_string(need.nodes) + " nodes";
    text += " with " + gib(need.gpu_memory) + " GiB each";
  }
  return text + "\n";
}

/// "mistake:no-wrap-policy: ...: 9.80 GiB more allocated in training than fsdp2", where both plans ran.
std::string price_of(const Mistake& mistake, const PlanReport& plan, const Report& report) {
  const auto right = std::ranges::find(report.plans, mistake.right, [](const PlanReport& p) { return p.plan.name; });
  std::string text = plan.plan.name + ": " + std::string(mistake.what);
  if (right != report.plans.end() && right->applicable() && !right->ranks.empty())
    text += ": " +
            gib(difference(plan.ranks.front().training_peak.figures.allocated,
                           right->ranks.front().training_peak.figures.allocated)) +
            " GiB more allocated in training than " + right->plan.name;
  return wrapped(text, 2) + "\n";
}

std::string reasons(const Report& report, const TableOptions& options) {
  std::string out;
  for (const PlanReport* plan : best_first(report)) {
    if (!plan->applicable()) out += wrapped(plan->plan.name + ": " + harmless(plan->reason(), "\n"), 2) + "\n";
    const std::int64_t ranks = ranks_of(report.job, plan->plan);
    if (plan->applicable() && ranks < report.job.cluster.world_size)
      out += plan->plan.name + ": runs on " + (ranks == 1 ? "one" : std::to_string(ranks)) + " of the job's " +
             std::to_string(report.job.cluster.world_size) + " GPUs, the others are idle\n";
    if (const Mistake* mistake = find_mistake(plan->plan.name); mistake && plan->applicable())
      out += price_of(*mistake, *plan, report);
    for (const auto& d : plan->diagnostics)
      if (d.severity != Severity::note || options.verbose || d.code == "cache-given-back" || d.code == "dies-in")
        out += diagnostic_line(plan->plan.name, d);
  }
  for (const auto& d : report.diagnostics)
    if (d.severity != Severity::note || d.code == "mistake-changes-nothing") out += diagnostic_line("", d);
  return out;
}

std::string details(const Report& report) {
  std::string out = "\nGPU capacity " + gib(report.job.cluster.gpu.capacity) +
                    " GiB: " + report.job.cluster.gpu.capacity_source + "\n";
  std::string notes;
  for (const auto& d : report.diagnostics)
    if (d.severity == Severity::note) notes += diagnostic_line("", d);
  if (!notes.empty()) out += "\nNotes and defaults:\n" + notes;
  const PlanReport* longest = nullptr;
  for (const auto& plan : report.plans)
    if (longest == nullptr || plan.outside.size() > longest->outside.size()) longest = &plan;
  if (longest != nullptr && !longest->outside.empty()) {
    out += "\nTerms outside the framework's allocator, plan " + longest->plan.name + ":\n";
    for (const auto& term : longest->outside)
      out += wrapped(term.name + " " + gib(term.bytes) + " GiB: " + term.source, 2) + "\n";
  }
  return out;
}

}  // namespace

std::string job_line(const JobSpec& job) {
  std::string text = harmless(job.model.name) + ", ";
  if (job.adapter) {
    text += job.quantization ? "QLoRA " + std::string{name_of(job.quantization->quant_type)} : "LoRA";
    text += " r " + std::to_string(job.adapter->r);
  } else {
    text += "full fine-tune";
  }
  text +=
      ", " + std::to_string(job.training.micro_batch_size) + " x " + std::to_string(job.training.seq_len) + " tokens";
  if (job.training.gradient_accumulation_steps > 1)
    text += " x " + std::to_string(job.training.gradient_accumulation_steps) + " micro batches";
  return text + ", " + std::to_string(job.cluster.world_size) + " x " + job.cluster.gpu.name;
}

std::string report_table(const Report& report, const TableOptions& options) {
  if (options.brief) return rows(report, options);
  std::string out = job_line(report.job) + "\n" + with_commas(report.parameters.total) + " parameters, " +
                    with_commas(report.parameters.trainable) + " trainable\n\n";
  out += rows(report, options) + "\n" + recommendation(report, options.colors);
  for (const PlanReport* plan : best_first(report)) {
    if (!plan->applicable() || plan->ranks.empty()) break;
    if (options.verbose || plan == best_first(report).front())
      out += plan->plan.name + " in GiB: " + ledger_text(*plan, plan->ranks.front().peak, report.job.cluster);
  }
  const std::string why = reasons(report, options);
  if (!why.empty()) out += "\n" + why;
  return options.verbose ? out + details(report) : out;
}

}  // namespace qlp
