#include "report/findings.h"

#include <algorithm>

#include "report/format.h"
#include "report/table.h"

namespace qlp {
namespace {

Color color_of(Severity severity) {
  if (severity == Severity::error) return Color::bad;
  return severity == Severity::warning ? Color::strong : Color::faint;
}

std::string fix_line(const Finding& finding) {
  if (!finding.fix) return finding.hint.empty() ? "" : "  " + wrapped("fix: " + finding.hint, 7) + "\n";
  const PricedFix& fix = *finding.fix;
  std::string text = "fix: " + fix.text + ": peak allocated " + gib(fix.peak_allocated) + " GiB";
  if (fix.saving) text += ", saves " + gib(*fix.saving) + " GiB";
  text += fix.fits ? ", fits" : ", does not fit";
  return "  " + wrapped(text, 7) + "\n";
}

std::string count_of(const std::vector<Finding>& findings, Severity severity, const std::string& word) {
  const auto count = std::ranges::count(findings, severity, &Finding::severity);
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

}  // namespace

std::string findings_text(const Report& report, bool colors) {
  const PlanReport& plan = report.plans.front();
  std::string out = job_line(report.job) + "\nplan " + plan.plan.name;
  if (plan.applicable()) {
    const PeakReport& peak = plan.ranks.front().peak;
    out += ": peak allocated " + gib(peak.figures.allocated) + " GiB, device " + gib(peak.device_used) + " of " +
           gib(peak.capacity) + " GiB, " +
           (!plan.fits              ? "does not fit"
            : plan.cache_given_back ? "fits, tightly"
                                    : "fits");
  }
  out += "\n\n";
  for (const Finding& finding : *report.findings) {
    out += colored(name_of(finding.severity), color_of(finding.severity), colors) + " " +
           colored(finding.code, Color::strong, colors);
    if (!finding.key_path.empty()) out += " (" + finding.key_path + ")";
    std::string text = finding.message;
    if (finding.evidence) text += ": " + gib(*finding.evidence) + " GiB";
    out += "\n  " + wrapped(text, 2) + "\n" + fix_line(finding);
  }
  return out + count_of(*report.findings, Severity::error, "error") + ", " +
         count_of(*report.findings, Severity::warning, "warning") + ", " +
         count_of(*report.findings, Severity::note, "note") + "\n";
}

}  // namespace qlp
