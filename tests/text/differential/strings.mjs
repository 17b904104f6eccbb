// SPDX-License-Identifier: Apache-2.0
// The strings that are compared: the same for the same seed, on any machine.

function generator(seed) {
  let state = seed >>> 0;
  return () => {  // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
}

const prose = `It was the first day of the harvest, and nobody in the village had slept. The miller's
daughter counted 127 sacks; her brother, who couldn't count, said there were "about a hundred".
They'd argued over less. By noon the carts stood in a row from the bridge to the churchyard,
and the horses - all twelve of them - were asleep. WE'LL START AT 4:30, he wrote. I'm not sure
that's what she meant; you're welcome to ask. Rock 'n' roll, O'Neill, fo'c'sle, y'all'd've.`.split(/\s+/);

const words = {
  latin: "naïve straße Ünïcödé garçon señor Ærø Łódź façade coöperate İstanbul ıspanak ǅungla ﬁnal Ĳssel ŉ ſharp Kelvin".split(" "),
  greek: "αβγ Ελληνικά Ὀδυσσεύς σοφός ΣΊΣΥΦΟΣ ΐ ώ".split(" "),
  cyrillic: "Привет мир Ёлка ёлка Їжак ѣ Ѳита съешь".split(" "),
  hebrew: "שלום עולם שָׁלוֹם".split(" "),
  arabic: "مرحبا بالعالم السَّلَامُ ١٢٣ ﷺ لا".split(" "),
  indic: "नमस्ते दुनिया क्षत्रिय বাংলা தமிழ் తెలుగు ಕನ್ನಡ മലയാളം ସ୍ୱାଗତ ગુજરાતી ਪੰਜਾਬੀ १२३".split(" "),
  thai: "สวัสดีชาวโลก น้ำ ๑๒๓ ລາວ ភាសាខ្មែរ မြန်မာ བོད་ཡིག".split(" "),
  chinese: "你好世界 漢字 数字一二三 標點，。！？「」 𠀀𪛖 北京市 ｆｕｌｌｗｉｄｔｈ １２３".split(" "),
  japanese: "こんにちは カタカナ ｶﾀｶﾅ 日本語の文章。 ゞ々〆ヶ ー〜".split(" "),
  korean: "한국어 안녕하세요 ㅋㅋㅋ 한글 각".split(" "),
  other: "ქართული Հայերեն ᏣᎳᎩ አማርኛ ᠮᠣᠩᠭᠣᠯ ꦗꦮ ⵜⴰⵎⴰⵣⵉⵖⵜ 𐍈𐌰 𝒳𝔸𝟙 𞤀𞤣 ꙮ".split(" "),
};
const emoji = ["😀", "👨‍👩‍👧‍👦", "👍🏽", "🏳️‍🌈", "🇩🇪🇯🇵", "1️⃣", "❤️", "❤︎", "🧑🏿‍🚀", "👩‍❤️‍💋‍👨", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "☺", "🫠", "🩷", "🫨", "™️", "©", "🀄", "\u200d", "\ufe0f", "🏽"];
const code = ["for (int i = 0; i < n; ++i) {", "}", "\n\tif x != None:", "        return self.__init__(**kw)", "camelCaseName", "snake_case_name", "SCREAMING_SNAKE", "0xDEADBEEF", "1e-10", "3.14f", "x=>y", "a->b", "::std", "#include <vector>", "//", "/* c */", "<!--", "-->", "<div class=\"a\">", "</div>", "\\n", "\\u00e9", "$(cmd)", "${VAR:-x}", "&&", "||", "!==", "===", "...", "`q`", "@decorator", "%s%d", "{{ x }}", "{% if %}", "SELECT * FROM t;", "λx.x", "#!/bin/sh\n", "a[i]+=b[j]*c;", "HTTPServer2Go", "iPhone15Pro", "\r\n", "////", "----", "====", "####"];
const space = [" ", "  ", "   ", "    ", "\t", "\t\t", "\n", "\n\n", "\n\n\n", "\r", "\r\n", "\r\n\r\n", "\u00a0", "\u3000", "\u200b", "\u0085", "\u2028", "\u2029", "\u000b", "\f", "\u180e", "\ufeff", "\u2009", "\u202f", "\u1680", " \n", "\n ", " \t ", "\u00ad", "\u2060"];
const punctuation = [..."!?.,;:-–—…·•«»“”‘’„‚'\"()[]{}<>/\\|@#$%^&*_+=~`´¨¸€£¥₿°§¶†‡‰½²³№℃⅓Ⅷⓐㄅ"];
const contraction = ["'s", "'S", "'t", "'T", "'re", "'RE", "'Re", "'ve", "'VE", "'m", "'M", "'ll", "'LL", "'lL", "'d", "'D", "’s", "’re", "'ſ", "'ᶫ", "'K", "''s", "' s", "'", "'x", "'r"];
const marks = ["\u0301", "\u0308", "\u0323", "\u0327", "\u0345", "\u093c", "\u05b0", "\u0651", "\u3099", "\u20dd", "\u1ab0", "\u0300\u0301", "\u0323\u0301", "\u1161", "\u11a8", "\u0f71", "\u0344"];
const numbers = ["0", "7", "42", "100", "1000", "12345", "1234567890", "1,000,000", "3.14159", "2024-02-29", "12:34:56", "+49 30 1234", "1/2", "½", "٣٤", "१२", "１２", "Ⅻ", "①", "²", "1e5", "0b101", "v1.2.3", "10%", "$5.99", "x86_64"];
const urls = ["http://a.b/c?d=e&f#g", "user@example.com", "C:\\dir\\file.txt", "/usr/lib/x.so.1", "192.168.0.1", "fe80::1", "www.example.org"];

export function makeStrings(count, specials, seed) {
  const random = generator(seed);
  const below = (n) => random() % n;
  const pick = (list) => list[below(list.length)];
  const scripts = Object.values(words);

  const scalar = (limit) => {
    const value = below(limit);
    return value >= 0xd800 && value < 0xe000 ? 0x41 : value;
  };
  const randomBytes = (length) => Uint8Array.from({ length }, () => below(256));
  const letters = () => Array.from({ length: 1 + below(9) }, () => String.fromCharCode(97 + below(26))).join("");
  const special = () => {
    if (specials.length === 0) return "<|x|>";
    const text = pick(specials);
    switch (below(8)) {
      case 0: return ` ${text}`;
      case 1: return `${text} `;
      case 2: return text.slice(0, 1 + below(text.length));
      case 3: return text.slice(below(text.length));
      case 4: return text.toUpperCase();
      case 5: return ` ${text}\n`;
      default: return text;
    }
  };
  const parts = [
    () => pick(prose) + " ",
    () => pick(pick(scripts)),
    () => pick(pick(scripts)) + " ",
    () => pick(emoji) + (below(3) ? "" : pick(emoji)),
    () => pick(code) + (below(2) ? " " : ""),
    () => pick(space),
    () => pick(space).repeat(1 + below(6)),
    () => pick(punctuation).repeat(1 + below(3)),
    () => letters() + pick(contraction) + (below(2) ? " " : ""),
    () => pick([..."aeouنक한あ"]) + pick(marks) + (below(2) ? pick(marks) : ""),
    () => pick(numbers) + (below(2) ? " " : ""),
    () => pick(urls) + " ",
    special,
    () => Buffer.from(randomBytes(1 + below(12))).toString("latin1"),
    () => new TextDecoder("utf-8").decode(randomBytes(1 + below(12))),
    () => String.fromCodePoint(scalar(0x3000)),
    () => String.fromCodePoint(scalar(0x10000)),
    () => String.fromCodePoint(scalar(0x110000)),
    () => String.fromCodePoint(scalar(0x20000)),
    () => letters() + " ",
  ];
  const strings = ["", " ", "\n", "a", "aaaaaaaaaa".repeat(30), " ".repeat(300), "\n".repeat(100), "é".repeat(100), "1".repeat(200), "😀".repeat(60), "!".repeat(200), "ab ".repeat(80), ...specials];
  while (strings.length < count) {
    // Most strings are of one kind, the rest mix them all.
    const kind = below(3) ? pick(parts) : undefined;
    const length = 1 + below(below(4) ? 10 : 30);
    let text = "";
    for (let i = 0; i < length; ++i) text += (kind && below(5) ? kind : pick(parts))();
    strings.push(text);
  }
  return strings.slice(0, count);
}
