// Reads one JSON array of texts, prints the o200k tokens of each: node count_tokens.cjs FOLDER < texts
const { encode } = require(require.resolve("gpt-tokenizer/encoding/o200k_base", { paths: [process.argv[2]] }));
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map((text) => encode(text).length)));
