import { codex } from "./Codex.ts";
import { openCode } from "./OpenCode.ts";
import { piChat, piResponses } from "./Pi.ts";
import { faults } from "./Faults.ts";
import { playTurn } from "./Turn.ts";
const [who, which] = process.argv.slice(2);
for (const a of [codex, openCode, piChat, piResponses].filter((a) => a.name.startsWith(who ?? "")))
  for (const f of faults.filter((f) => f.title.includes(which ?? "")))
    console.log(a.name, "|", f.title, "|", JSON.stringify(await playTurn(a, f, (process.argv[4] ?? "direct") as never, process.env["MODS"] ?? "", {})));
