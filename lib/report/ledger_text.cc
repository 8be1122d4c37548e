#include "report/ledger_text.h"

#include "estimate/ledger.h"
#include "estimate/outside_terms.h"
#include "report/format.h"
#include "report/host_text.h"

namespace qlp {

std::string ledger_text(const PlanReport& plan, const PeakReport& peak, const ClusterSpec& cluster) {
  std::string device = "device " + gib(peak.device_used) + " = reserved " + gib(peak.reserved_here());
  const Bytes fixed = peak.reserved_here() + sum(plan.outside) + cluster.used_by_others;
  for (const auto& term : plan.outside)
    device += " + " + term.name + " " + gib(term.managed ? Bytes{peak.device_used}.remove(fixed) : term.bytes);
  if (cluster.used_by_others != Bytes{}) device += " + used_by_others " + gib(cluster.used_by_others);
  const std::string used =
      peak.required_device ? "required " + gib(*peak.required_device) : "device " + gib(peak.device_used);
  std::string text = device + "\n  headroom " + gib(peak.headroom) + " = capacity " + gib(peak.capacity) +
                     " - margin " + gib(margin_of(cluster)) + " - " + used + "\n";
  if (plan.host) text += "  " + wrapped(host_text(*plan.host), 2) + "\n";
  return text;
}

std::string reserved_text(const PeakReport& peak) {
  std::string text;
  if (peak.reserved_at_worst() > peak.figures.reserved)
    text = "reserved " + gib(peak.figures.reserved) + " on a GPU that never lags, " + gib(peak.reserved_at_worst()) +
           " on one whose streams lag as far as they can";
  if (peak.reserved_when_limited)
    text += (text.empty() ? "reserved " + gib(peak.reserved_at_worst()) + " if nothing stopped it" : std::string()) +
            ", " + gib(*peak.reserved_when_limited) + " within what the device leaves: the cache is given back";
  return text.empty() ? text : text + "\n";
}

}  // namespace qlp
