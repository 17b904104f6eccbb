// SPDX-License-Identifier: Apache-2.0
// The interpreter by itself: expected texts are what Python and Jinja define, written by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/text/jinja/template.h"

namespace driftscope::jinja {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

Json context() {
  return Json::parse(R"({"s": "Hello World", "n": 3, "l": [3, 1, 2], "e": [], "no": null,
      "d": {"b": 1, "a": "x", "items": 5},
      "ms": [{"role": "user", "content": " hi "}, {"role": "assistant", "content": "yo"}]})");
}

std::string render(std::string_view source, const Limits& limits = {}) {
  const auto parsed = Template::parse(source, "t");
  if (!parsed) return "parse: " + parsed.error().message;
  const auto rendered = parsed->render(context(), Date{.year = 2025, .month = 3, .day = 9}, limits);
  if (!rendered) return "render: " + rendered.error().message;
  return rendered->text;
}

TEST(Jinja, WhiteSpaceIsControlledAsTransformersSetsIt) {
  EXPECT_EQ(render("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(render("a \n {%- if true -%} \n b {%- endif %}"), "ab");
  EXPECT_EQ(render("  {%+ if true +%}\nb{% endif %}"), "  \nb");
  EXPECT_EQ(render("x  {{- 1 -}}  \n y"), "x1y");
  EXPECT_EQ(render("a\n  {# c #}\nb{#- d -#} \n e"), "a\nbe");
  EXPECT_EQ(render("{% raw %}{{ x }}{% endraw %}"), "{{ x }}");
  EXPECT_EQ(render("a\r\nb\rc\n\n"), "a\nb\nc\n");
  EXPECT_EQ(render("{{ '{{' }} {{ {'a': {'b': 1}} }}"), "{{ {'a': {'b': 1}}");
}

TEST(Jinja, ValuesPrintAsInPython) {
  EXPECT_EQ(
      render("{{ true }} {{ none }} {{ 1.0 }} {{ 1e22 }} {{ 1e16 }} {{ 0.1 + 0.2 }} {{ 1e-5 }}"),
      "True None 1.0 1e+22 1e+16 0.30000000000000004 1e-05");
  EXPECT_EQ(render("{{ [1, 'a', none, (2,), {'k': 'it\\'s'}] }}"),
            "[1, 'a', None, (2,), {'k': \"it's\"}]");
  EXPECT_EQ(render("{{ ['\\n', 'é', '\\x07'] }}"), "['\\n', 'é', '\\x07']");
  EXPECT_EQ(render("{{ range(3) }} {{ d.keys() }}"), "range(0, 3) dict_keys(['b', 'a', 'items'])");
}

TEST(Jinja, NumbersDivideAsInPython) {
  EXPECT_EQ(
      render("{{ 7 / 2 }} {{ 6 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7.5 // 2 }}"),
      "3.5 3.0 3 -4 2 3.0");
  EXPECT_EQ(render("{{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ true + 1 }} {{ 1 == 1.0 }}"),
            "1024 0.5 4 2 True");
  EXPECT_EQ(render("{{ 2.5 | round }} {{ 3.5 | round }} {{ 2.675 | round(2) }} {{ 7 | round }}"),
            "2.0 4.0 2.67 7");
  EXPECT_THAT(render("{{ 1 / 0 }}"), HasSubstr("division by zero"));
  EXPECT_THAT(render("{{ 9223372036854775807 + 1 }}"), HasSubstr("63 bits"));
}

TEST(Jinja, SlicesAndIndices) {
  EXPECT_EQ(render("{{ s[::-1] }}|{{ s[-5:] }}|{{ s[1:8:3] }}|{{ s[20:] }}"),
            "dlroW olleH|World|eoo|");
  EXPECT_EQ(render("{{ l[::-1] }}{{ l[-1] }}{{ l[5] is defined }}{{ l[:2] }}"),
            "[2, 1, 3]2False[3, 1]");
  EXPECT_EQ(render("{{ 'aé日🎉'[2] }}{{ 'aé日🎉'[::-1] }}{{ 'aé日🎉' | length }}"), "日🎉日éa4");
  // A method before an entry with a dot, an entry before a method in brackets.
  EXPECT_EQ(render("{{ d['items'] }}{{ d.items() | list | length }}{{ d.a }}{{ d['a'] }}"), "53xx");
}

TEST(Jinja, WhatIsUndefined) {
  EXPECT_EQ(
      render("[{{ x }}][{{ x is defined }}][{{ d.q }}][{{ x | default('y') }}][{{ x or 1 }}]"),
      "[][False][][y][1]");
  EXPECT_EQ(render("{% for i in x %}a{% else %}none{% endfor %}{{ x | length }}{{ x == y }}"),
            "none0True");
  EXPECT_EQ(render("{{ no.x is defined }}{{ no['x'] is defined }}"), "FalseFalse");
  EXPECT_THAT(render("a\n\n{{ x.y }}"), HasSubstr("t: line 3: \"x\" is undefined"));
  EXPECT_THAT(render("{{ 'a' + x }}"), HasSubstr("\"x\" is undefined"));
  EXPECT_THAT(render("{{ ms[0].nosuch() }}"), HasSubstr("no attribute \"nosuch\""));
}

TEST(Jinja, Loops) {
  EXPECT_EQ(render("{% for i in l %}{{ loop.index }}{{ i }}{{ ',' if not loop.last }}{% endfor %}"),
            "13,21,32");
  EXPECT_EQ(render("{% for i in l if i > 1 %}{{ loop.length }}{{ i }}{% endfor %}"), "2322");
  EXPECT_EQ(render("{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}"), "b1axitems5");
  EXPECT_EQ(render("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}"
                   "{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}"),
            "013");
  EXPECT_EQ(render("{% for i in l %}{{ loop.previtem }}<{{ loop.cycle('a', 'b') }}>"
                   "{{ loop.nextitem }}{{ loop.changed(i > 1) }} {% endfor %}"),
            "<a>1True 3<b>2True 1<a>True ");
  // What is set inside stays inside, but for a namespace.
  EXPECT_EQ(
      render("{% set a = 1 %}{% set ns = namespace(a=1) %}"
             "{% for i in l %}{% set a = i %}{% set ns.a = i %}{% endfor %}{{ a }}{{ ns.a }}"),
      "12");
}

TEST(Jinja, MacrosAndBlocks) {
  EXPECT_EQ(
      render("{% macro m(a, b='x') %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(b=2, a=3) }}"),
      "1x32");
  EXPECT_EQ(render("{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, k=2) }}"),
            "(1,){'k': 2}");
  EXPECT_EQ(
      render("{% macro m(n) %}{{ n }}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}"),
      "3210");
  EXPECT_EQ(render("{% macro m() %}<{{ caller('x') }}>{% endmacro %}"
                   "{% call(a) m() %}{{ a }}!{% endcall %}"),
            "<x!>");
  EXPECT_EQ(
      render("{% set x %}a{{ n }}{% endset %}{{ x | upper }}{% filter upper %}q{% endfilter %}"),
      "A3Q");
  EXPECT_EQ(render("{% generation %}a{% endgeneration %}"), "a");
  EXPECT_THAT(render("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}"), HasSubstr("at most 1"));
}

TEST(Jinja, JsonIsThatOfTransformers) {
  EXPECT_EQ(render("{{ {'a': [1, 2.0, none, true], 'é': '<\"\\n'} | tojson }}"),
            "{\"a\": [1, 2.0, null, true], \"é\": \"<\\\"\\n\"}");
  EXPECT_EQ(render("{{ {'a': [1], 'b': {}} | tojson(indent=2) }}"),
            "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}");
  EXPECT_THAT(render("{{ x | tojson }}"), HasSubstr("\"x\" is undefined"));
}

TEST(Jinja, TheClockStandsStill) {
  EXPECT_EQ(render("{{ strftime_now('%d %B %Y, %a %-d.%m.%y %j %H:%M') }}"),
            "09 March 2025, Sun 9.03.25 068 00:00");
  EXPECT_THAT(render("{{ strftime_now('%Q') }}"), HasSubstr("%Q is not supported"));
  EXPECT_FALSE(Date::parse("2025-02-29"));
  EXPECT_TRUE(Date::parse("2024-02-29"));
  EXPECT_FALSE(Date::parse("2025-3-9"));
}

TEST(Jinja, ErrorsNameTheLineAndTheThing) {
  EXPECT_THAT(render("a\n{{ n | nosuch }}"), HasSubstr("line 2: unknown filter \"nosuch\""));
  EXPECT_THAT(render("{{ n is nosuch }}"), HasSubstr("unknown test \"nosuch\""));
  EXPECT_THAT(render("\n\n{% nosuch %}"), HasSubstr("line 3: unknown tag \"nosuch\""));
  EXPECT_THAT(render("{% include 'x' %}"), HasSubstr("\"include\" is not supported"));
  EXPECT_THAT(render("{{ 'a"), HasSubstr("not closed"));
  EXPECT_THAT(render("{{ (1 }}"), HasSubstr("unexpected \"}\"; \")\" comes first"));
  EXPECT_THAT(render("{% if n %}"), HasSubstr("{% endif %} is missing"));
  EXPECT_THAT(render("{{ raise_exception('no ' ~ n) }}"),
              HasSubstr("line 1: the template refuses these messages: no 3"));
  // Behind an if that is not taken an unknown filter is no error, as in Jinja.
  EXPECT_EQ(render("{% if false %}{{ n | nosuch }}{% endif %}b"), "b");
}

// What Jinja's immutable sandbox forbids.
TEST(Jinja, NothingGivenIsChanged) {
  EXPECT_THAT(render("{{ l.append(1) }}"), HasSubstr("no attribute \"append\""));
  EXPECT_THAT(render("{{ d.update({}) }}"), HasSubstr("no attribute \"update\""));
  EXPECT_EQ(render("{{ s.__class__ }}"), "");
  EXPECT_THAT(render("{% set d.x = 1 %}"), HasSubstr("not a namespace"));
  EXPECT_THAT(render("{{ range(1000000) }}"), HasSubstr("range"));
}

TEST(Jinja, NothingRunsWithoutEnd) {
  const std::vector<std::string> hostile{
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{% for a in range(99999) %}{{ 'x' * 10000 }}{% endfor %}",
      "{{ 'x' * 99999999999 }}",
      "{{ [0] * 99999999999 }}",
      "{{ '%99999999999d' % 1 }}",
      "{{ '{:99999999999}'.format(1) }}",
      "{{ 'a'.center(99999999999) }}",
      "{% set ns = namespace(x=[]) %}{% for a in range(9999) %}{% set ns.x = [ns.x, ns.x] %}{% "
      "endfor %}",
      "{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% endfor %}{{ ns.x }}",
      "{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% endfor %}{{ ns.x | tojson }}",
      "{% set ns = namespace(x=[1], y=[1]) %}{% for a in range(99) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
      "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}",
      "{% set ns = namespace(x='a') %}{% for a in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% "
      "endfor %}",
      "{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}",
      "{{ " + std::string(5000, '-') + "1 }}",
      "{{ 1" +
          [] {
            std::string more;
            for (int i = 0; i < 5000; ++i) more += "+1";
            return more;
          }() +
          " }}",
      [] {
        std::string more;
        for (int i = 0; i < 5000; ++i) more += "{% if 1 %}";
        return more;
      }(),
      "{{ a" +
          [] {
            std::string more;
            for (int i = 0; i < 5000; ++i) more += ".a";
            return more;
          }() +
          " }}"};
  for (const std::string& source : hostile) {
    const std::string result = render(source, {.steps = 1'000'000});
    EXPECT_TRUE(result.starts_with("parse: t: line ") || result.starts_with("render: t: line "))
        << source.substr(0, 80) << " gave " << result.substr(0, 200);
    EXPECT_EQ(result.find('\n'), std::string::npos);
  }
  EXPECT_THAT(render("{% for i in range(100) %}{% endfor %}", {.steps = 50}),
              HasSubstr("more than 50 steps"));
  EXPECT_THAT(render("0123456789", {.output_bytes = 5}), HasSubstr("more than 5 bytes"));
}

}  // namespace
}  // namespace driftscope::jinja
