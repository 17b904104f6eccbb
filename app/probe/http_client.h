// SPDX-License-Identifier: Apache-2.0
// HTTP requests through libcurl: TLS verified, bounded in time and size, stoppable. Redirects are
// followed on the same host only, so that credentials never reach another one.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope {

struct HttpRequest {
  std::string url;
  std::string body;  // empty: GET
  std::vector<std::pair<std::string, std::string>> headers = {};
};

struct HttpLimits {
  double connect_seconds = 10.0;
  double total_seconds = 120.0;
  // Fewer than one byte a second for this long: the server stalls.
  double stall_seconds = 60.0;
  std::size_t most_bytes = std::size_t{256} << 20U;
  std::string ca_file = {};  // further certificates to trust; empty: the system's
};

struct HttpAnswer {
  std::int64_t status = 0;                                   // 0: none came
  std::vector<std::pair<std::string, std::string>> headers;  // lower-case names, of the last answer
  std::string body;      // what came, also of an answer that was cut off
  std::string error;     // of the transport; empty: the answer is whole
  bool stopped = false;  // by the stop token
  double seconds = 0.0;
};

// One connection that is kept between requests; use one from one thread at a time.
class HttpClient {
 public:
  explicit HttpClient(HttpLimits limits);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  [[nodiscard]] HttpAnswer send(const HttpRequest& request, const std::stop_token& stop);

 private:
  struct State;
  std::unique_ptr<State> m_state;
};

// "https://host:port" of a URL, lower case; empty where it is none of http and https.
[[nodiscard]] std::string origin_of(const std::string& url);

}  // namespace driftscope
