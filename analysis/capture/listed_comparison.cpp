// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/listed_comparison.h"

#include <algorithm>
#include <map>

#include "analysis/compare/imported_side.h"
#include "analysis/compare/listed_step.h"
#include "analysis/compare/value_words.h"

namespace driftscope {
namespace {

std::optional<ImportedSide> side_of(const LanePlace& place) {
  const CaptureLaneInfo* info = place.reader->lane(place.lane);
  return info == nullptr ? std::nullopt : imported_side(info->lane.envelope_json);
}

// Ids of both sides as ids of one vocabulary: those of the tokenizer, or places in a list of the
// pieces that occur.
class SharedIds {
 public:
  explicit SharedIds(bool interned) : m_interned(interned) {}
  TokenId map(const CaptureReader& reader, TokenId id) {
    const auto& pieces = reader.header().pieces;
    const auto index = static_cast<std::size_t>(id.value);
    const bool known = id.value >= 0 && index < pieces.size();
    if (!m_interned) {
      if (known && !pieces[index].empty()) m_pieces[id] = pieces[index];
      return id;
    }
    // An id without a piece is damage; it is equal to nothing.
    const std::string key = known ? pieces[index] : "\xff" + std::to_string(id.value);
    const auto [entry, fresh] =
        m_ids.try_emplace(key, TokenId{static_cast<std::int32_t>(m_ids.size())});
    if (fresh && known) m_pieces[entry->second] = key;
    return entry->second;
  }
  [[nodiscard]] const std::map<TokenId, std::string>& pieces() const { return m_pieces; }

 private:
  bool m_interned;
  std::map<std::string, TokenId> m_ids;
  std::map<TokenId, std::string> m_pieces;
};

struct ListedLane {
  std::vector<ListedRow> rows;
  std::vector<TokenId> tokens;
};

Result<ListedLane> read_lane(const LanePlace& place, const ImportedSide& side, SharedIds& ids) {
  auto tokens = place.reader->tokens(place.lane);
  if (!tokens) return tl::unexpected<Error>(tokens.error());
  ListedLane lane;
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    auto top = place.reader->top(place.lane, static_cast<std::int64_t>(i));
    if (!top) return tl::unexpected<Error>(top.error());
    for (RankedToken& entry : *top) entry.token = ids.map(*place.reader, entry.token);
    const TokenId token = ids.map(*place.reader, (*tokens)[i]);
    lane.tokens.push_back(token);
    lane.rows.push_back(
        {.token = token,
         .listed = std::move(*top),
         .log_probabilities = side.values != "logit" && side.values != "not_stated"});
  }
  return lane;
}

LaneView view_of(const LanePlace& place, Lane shown, const ListedLane& lane) {
  const CaptureLaneInfo& info = *place.reader->lane(place.lane);
  return {.lane = shown, .state = info.state, .tokens = lane.tokens, .stop = info.stop};
}

}  // namespace

bool is_imported(const LanePlace& place) { return side_of(place).has_value(); }

bool is_listed(const LanePlace& place) {
  const auto side = side_of(place);
  return side && side->listed;
}

bool rows_by_place(const LanePlace& place) {
  const auto side = side_of(place);
  return side && side->scored && !side->tokens_given;
}

Result<ComparisonPointer> compare_listed(const LanePlace& a, const LanePlace& b,
                                         ExperimentFacts facts, const ComparePolicy& policy) {
  const auto side_a = side_of(a);
  const auto side_b = side_of(b);
  if (!side_a || !side_b || !side_a->listed || !side_b->listed) {
    return fail(ErrorKind::inconclusive,
                "compare: one side lists a few tokens of each step and the other has whole rows; "
                "import both from the same kind of file");
  }
  if (side_a->interned != side_b->interned) {
    return fail(ErrorKind::inconclusive,
                "compare: one side names its tokens by id and the other by text; import both files "
                "at once: driftscope import A B -o FILE.h5");
  }
  SharedIds ids(side_a->interned);
  auto lane_a = read_lane(a, *side_a, ids);
  if (!lane_a) return tl::unexpected<Error>(lane_a.error());
  auto lane_b = read_lane(b, *side_b, ids);
  if (!lane_b) return tl::unexpected<Error>(lane_b.error());
  auto comparison = std::make_shared<Comparison>();
  comparison->generation = 1;
  comparison->state =
      a.reader->state() == TraceState::complete ? b.reader->state() : a.reader->state();
  comparison->policy = policy;
  const auto k = static_cast<std::size_t>(std::max<std::int64_t>(policy.top_k, 0));
  comparison->imported_a = side_a;
  comparison->imported_b = side_b;
  if (!numbers_comparable(*comparison)) {
    for (ListedRow& row : lane_a->rows) row.comparable = false;
  }
  const std::size_t steps = std::min(lane_a->rows.size(), lane_b->rows.size());
  for (std::size_t i = 0; i < steps; ++i) {
    comparison->steps.push_back(
        compare_listed_step(static_cast<std::int64_t>(i), lane_a->rows[i], lane_b->rows[i], k));
    if (lane_a->tokens[i] != lane_b->tokens[i]) break;  // later rows follow other tokens
  }
  comparison->lanes = {view_of(a, Lane::a, *lane_a), view_of(b, Lane::b, *lane_b)};
  for (const auto& [id, bytes] : ids.pieces()) comparison->pieces.push_back({id, bytes});
  facts.taps.clear();
  facts.lanes = {Lane::a, Lane::b};
  facts.vocabulary = std::max(a.reader->header().vocabulary, b.reader->header().vocabulary);
  facts.planned_steps =
      static_cast<std::int64_t>(std::max(lane_a->rows.size(), lane_b->rows.size()));
  conclude(*comparison, facts);
  return ComparisonPointer(comparison);
}

}  // namespace driftscope
