// The record of a real run (torch 2.8.0 on the null GPU: nn.Linear(256, 256), two steps of SGD), and parts of others.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace qlp {

inline std::string linear_record() {
  std::ostringstream text;
  text << std::ifstream{"test/data/trace/linear.jsonl", std::ios::binary}.rdbuf();
  return text.str();
}

inline std::string torch_event(const std::string& version, const std::string& cuda, const std::string& hip = "") {
  return R"({"event": "torch", "argv": ["python"], "version": ")" + version + R"(", "cuda": ")" + cuda +
         R"(", "hip": ")" + hip + R"(", "rank": 0, "world_size": 1})" + "\n";
}

/// A phase in which everything is `bytes`.
inline std::string phase_event(const std::string& name, const std::string& phase, const std::string& bytes,
                               const std::string& more = R"("retries": 0, "ooms": 0)") {
  const std::string figures = R"({"requested": )" + bytes + R"(, "allocated": )" + bytes + R"(, "active": )" + bytes +
                              R"(, "reserved": )" + bytes + "}";
  return R"({"event": "phase", "name": ")" + name + R"(", "phase": ")" + phase + R"(", "device": 0, "peak": )" +
         figures + R"(, "held": )" + figures + R"(, "device_peak": )" + bytes + ", " + more + "}\n";
}

}  // namespace qlp
