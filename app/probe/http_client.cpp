// SPDX-License-Identifier: Apache-2.0
#include "app/probe/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <mutex>
#include <string_view>

namespace driftscope {
namespace {

constexpr int kMostRedirects = 3;

void start_curl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

struct EasyDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string part_of(CURLU* url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string result(text);
  curl_free(text);
  return result;
}

// `location` may be relative to `url`.
std::string resolved(const std::string& url, const std::string& location) {
  const std::unique_ptr<CURLU, UrlDeleter> parsed(curl_url());
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return {};
  if (curl_url_set(parsed.get(), CURLUPART_URL, location.c_str(), 0) != CURLUE_OK) return {};
  return part_of(parsed.get(), CURLUPART_URL, 0);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// What the callbacks of one transfer share.
struct Transfer {
  HttpAnswer* answer;
  const std::stop_token* stop;
  std::size_t most_bytes;
  bool too_long = false;
};

std::size_t take_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::size_t bytes = size * count;
  if (transfer.answer->body.size() + bytes > transfer.most_bytes) {
    transfer.too_long = true;
    return 0;
  }
  transfer.answer->body.append(data, bytes);
  return bytes;
}

std::size_t take_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line = trimmed({data, size * count});
  if (line.starts_with("HTTP/")) transfer.answer->headers.clear();
  const std::size_t colon = line.find(':');
  if (colon != std::string_view::npos && !line.starts_with("HTTP/")) {
    std::string name(trimmed(line.substr(0, colon)));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    transfer.answer->headers.emplace_back(std::move(name),
                                          std::string(trimmed(line.substr(colon + 1))));
  }
  return size * count;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(user)->stop->stop_requested() ? 1 : 0;
}

std::string header_of(const HttpAnswer& answer, std::string_view name) {
  for (const auto& [key, value] : answer.headers) {
    if (key == name) return value;
  }
  return {};
}

}  // namespace

struct HttpClient::State {
  HttpLimits limits;
  std::unique_ptr<CURL, EasyDeleter> handle;

  void prepare(const HttpRequest& request, const std::string& url, const curl_slist* headers,
               Transfer& transfer) const {
    CURL* curl = handle.get();
    curl_easy_reset(curl);  // keeps the connection
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 512L * 1024L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "driftscope");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (!limits.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, limits.ca_file.c_str());
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(limits.connect_seconds));
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, milliseconds(limits.total_seconds));
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME,
                     std::max(1L, static_cast<long>(limits.stall_seconds)));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
    if (request.body.empty()) {
      curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
      return;
    }
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
  }

  static long milliseconds(double seconds) {
    return std::max(1L, static_cast<long>(seconds * 1000.0));
  }

  HttpAnswer once(const HttpRequest& request, const std::string& url,
                  const std::stop_token& stop) const {
    HttpAnswer answer;
    Transfer transfer{.answer = &answer, .stop = &stop, .most_bytes = limits.most_bytes};
    std::unique_ptr<curl_slist, ListDeleter> headers;
    for (const auto& [name, value] : request.headers) {
      headers.reset(curl_slist_append(headers.release(), (name + ": " + value).c_str()));
    }
    prepare(request, url, headers.get(), transfer);
    const CURLcode code = curl_easy_perform(handle.get());
    long status = 0;
    curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
    answer.status = status;
    if (code == CURLE_OK) return answer;
    answer.stopped = stop.stop_requested();
    answer.error = describe(code, transfer);
    return answer;
  }

  [[nodiscard]] std::string describe(CURLcode code, const Transfer& transfer) const {
    if (transfer.too_long)
      return fmt::format("the answer is longer than {} MiB", limits.most_bytes >> 20U);
    switch (code) {
      case CURLE_OPERATION_TIMEDOUT:
        return fmt::format("timed out (limit {:.0f} s, stalled at most {:.0f} s)",
                           limits.total_seconds, limits.stall_seconds);
      case CURLE_ABORTED_BY_CALLBACK:
        return "stopped on request";
      case CURLE_PARTIAL_FILE:
      case CURLE_RECV_ERROR:
      case CURLE_GOT_NOTHING:
        return "the connection was closed before the answer was whole";
      default:
        return curl_easy_strerror(code);
    }
  }
};

HttpClient::HttpClient(HttpLimits limits) : m_state(std::make_unique<State>()) {
  start_curl();
  m_state->limits = std::move(limits);
  m_state->handle.reset(curl_easy_init());
}
HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::send(const HttpRequest& request, const std::stop_token& stop) {
  const auto begin = std::chrono::steady_clock::now();
  std::string url = request.url;
  HttpAnswer answer;
  for (int i = 0; i <= kMostRedirects; ++i) {
    answer = m_state->once(request, url, stop);
    const bool redirect = answer.status >= 300 && answer.status < 400 && answer.status != 304;
    const std::string location = redirect ? header_of(answer, "location") : std::string();
    if (location.empty()) break;
    const std::string next = resolved(url, location);
    if (origin_of(next) != origin_of(request.url) || origin_of(next).empty()) {
      answer.error =
          fmt::format("redirects to {}: not followed, since that is another host", origin_of(next));
      break;
    }
    if (i == kMostRedirects) answer.error = "redirects in a circle";
    url = next;
  }
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return answer;
}

std::string origin_of(const std::string& url) {
  const std::unique_ptr<CURLU, UrlDeleter> parsed(curl_url());
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return {};
  const std::string scheme = part_of(parsed.get(), CURLUPART_SCHEME, 0);
  if (scheme != "http" && scheme != "https") return {};
  std::string origin = fmt::format("{}://{}:{}", scheme, part_of(parsed.get(), CURLUPART_HOST, 0),
                                   part_of(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
  for (char& c : origin) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return origin;
}

}  // namespace driftscope
