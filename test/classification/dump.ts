import { aiSdkClients } from "./AiSdkClients.ts";
import { effectClients } from "./EffectClients.ts";
import { faults } from "./Faults.ts";
import { rawClients } from "./RawClients.ts";
import { sdkClients } from "./SdkClients.ts";

const only = process.argv[2];
const pick = new RegExp(process.argv[3] ?? ".");
const chain = (e: any, d = 0): string =>
  e === undefined || d > 4
    ? ""
    : `${e?.name ?? e?._tag ?? typeof e}(${e?.code ?? ""} ${e?.statusCode ?? e?.status ?? ""}: ${String(e?.message ?? e).slice(0, 70)})` +
      (e?.cause ? ` < ${chain(e.cause, d + 1)}` : e?.reason ? ` ~ ${chain(e.reason, d + 1)}` : "");
for (const fault of faults) {
  if (only && only !== "all" && !fault.name.includes(only)) continue;
  console.log("## " + fault.name);
  for (const client of [...rawClients, ...effectClients, ...sdkClients, ...aiSdkClients].filter((c) =>
    pick.test(c.name),
  )) {
    const t = performance.now();
    if (/timeout/.test(fault.name) && !process.argv[4]) {
    }
    const r = (await Promise.race([fault.run(client), new Promise((r) => setTimeout(() => r("HANGS"), 4000))])) as any;
    const f = r.failure;
    console.log(
      "  " + client.name.padEnd(30),
      r === "HANGS"
        ? "HANGS"
        : f === undefined
          ? "clean"
          : [
              f.kind,
              f.reason ?? f.by ?? f.status ?? "",
              f.code ?? "",
              f.operation ?? "",
              f.retryable ? "R" : "-",
              f.not_processed ? "NP" : "",
            ].join(" "),
      `${Math.round(performance.now() - t)}ms`,
      "\n      ",
      chain(r.error),
    );
  }
}
process.exit(0);
