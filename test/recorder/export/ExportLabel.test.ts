import { assert, describe, it } from "@effect/vitest";
import { Rule } from "../../../src/domain/Decision.ts";
import { kinds } from "../../../src/domain/Failure.ts";
import { SeamFault, SeamProof, SeamRefusal } from "../../../src/domain/SeamWords.ts";
import { ExportIds, ExportLabels, isPublic } from "../../../src/recorder/export/ExportLabel.ts";
import { seeded } from "../../Seeded.ts";
import { canaries, canary } from "./Planted.ts";

const seed = Number(process.env.STREAM_RECOVERY_SEED ?? 20_261_121);
const words = (text: string): ReadonlyArray<string> => text.trim().split(/\s+/);

const publicNames: Readonly<Record<string, ReadonlyArray<string>>> = {
  models:
    words(`claude-sonnet-4-5 claude-sonnet-4-5-20250929 claude-3-5-haiku-latest gpt-5.1-codex-mini gpt-4o-2024-08-06
    gpt-4.1-nano o3-mini o4-mini gemini-2.5-flash-lite gemini-3-pro-preview deepseek-chat deepseek-reasoner
    openai/gpt-oss-120b meta-llama/llama-4-maverick-17b-128e-instruct qwen3-235b-a22b qwen/qwen3-coder:free grok-4-fast
    moonshotai/kimi-k2-thinking z-ai/glm-4.6 mistral-large-2411 codestral-latest llama-3.3-70b-versatile
    us.anthropic.claude-sonnet-4-5-20250929-v1:0 command-r-plus`),
  providers: words("anthropic openai google gemini openrouter azure-openai bedrock vertex groq scripted"),
  tools: words(`bash Bash read_file write_file edit MultiEdit Glob Grep WebFetch web_search apply_patch todowrite
    str_replace_editor list_dir run_terminal_cmd exec_command browser_action get_weather send_email code_execution
    tool_search_tool_bm25`),
  calls: words("0.0 0.12 1.255 folded.runtime folded.provider"),
  codes: words(
    "ECONNRESET UND_ERR_SOCKET REFUSED_STREAM overloaded_error rate_limit_exceeded 429 TypeError insufficient_quota",
  ),
  finishes: words(
    "stop end_turn tool_calls tool_use max_tokens length STOP MAX_TOKENS content_filter SAFETY completed",
  ),
  policies: words("default strict default+stricter strict+stricter 1 2.1"),
  rules: Rule.literals,
  seams: [...SeamProof.literals, ...SeamRefusal.literals, ...SeamFault.literals],
  kinds: Object.keys(kinds),
};

/** Names that must be numbered, because they contain unknown words. */
const unknownNames = words("versatile_frobnicator llama-3.3-70b-quuxed my-company-internal-gateway acme");

describe("ExportLabel", () => {
  for (const [group, names] of Object.entries(publicNames)) {
    it(`exports ${group} made of known words`, () =>
      assert.deepStrictEqual(
        names.filter((name) => !isPublic(name)),
        [],
      ));
  }

  it("numbers a name with other words, however harmless it looks", () =>
    assert.deepStrictEqual(unknownNames.filter(isPublic), []));

  it("exports no canary", () => assert.deepStrictEqual(canaries.filter(isPublic), []));

  it(`exports no random key, passphrase or number; seed ${seed}`, () => {
    const random = seeded(seed);
    for (let round = 0; round < 20_000; round += 1) {
      const planted = canary(random);
      assert.isFalse(isPublic(planted), `seed ${seed}, round ${round}: ${planted}`);
    }
  });

  it("counts digits: addresses, telephone numbers and PINs are no names", () => {
    const numbers = words(`1234 12345678 10.0.0.1 host.10.0.0.1 user_1234 token-4111-1111 tool-555-123-4567 4111.1111
      key-1-2-3-4 gpt-4111-1111-1111-1111 claude-192.168.10.77 2024-08-06`);
    assert.deepStrictEqual(numbers.filter(isPublic), []);
  });

  it("allows slashes only between a known vendor and its model", () => {
    const paths = words(
      "/bash src/index home/user/file openai/gpt-5/file file/read //host openai//gpt-5 openai/ /gpt-5",
    );
    assert.deepStrictEqual(paths.filter(isPublic), []);
  });

  it("gives equal names equal numbers, and different names different ones", () => {
    const labels = new ExportLabels();
    assert.deepStrictEqual(
      ["hunter2", "bash", "other canary", "hunter2", ""].map((name) => labels.of(name)),
      ["label_1", "bash", "label_2", "label_1", ""],
    );
  });

  it("numbers a name that looks like one of our numbers, so that the two are never confused", () => {
    const labels = new ExportLabels(["label_9", "LABEL_1"]);
    assert.deepStrictEqual(
      ["label_2", "LABEL_1", "label_9"].map((name) => labels.of(name)),
      ["label_1", "label_2", "label_3"],
    );
  });

  it("exports a caller's own names, but never one that is no name", () => {
    const own = ["frobnicate", "has space", "x".repeat(65), "jane@example.com", "a\nb"];
    const labels = new ExportLabels(own);
    assert.deepStrictEqual(
      own.map((name) => labels.of(name)),
      ["frobnicate", "label_1", "label_2", "label_3", "label_4"],
    );
    assert.strictEqual(labels.of("__proto__"), "label_5");
    assert.strictEqual(labels.of("constructor"), "label_6");
  });

  it("numbers incidents and keeps no part of their ids", () => {
    const ids = new ExportIds();
    assert.deepStrictEqual(
      ["jane.1", "jane.2", "jane.1"].map((id) => ids.of(id)),
      ["incident_1", "incident_2", "incident_1"],
    );
  });
});
