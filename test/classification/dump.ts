import { aiSdkClients } from "./AiSdkClients.ts";
import { events, statuses } from "./Answers.ts";
import { effectClients } from "./EffectClients.ts";
import { faults } from "./Faults.ts";
import { http2Clients, http2Faults } from "./Http2.ts";
import { rawClients } from "./RawClients.ts";
import { sdkClients } from "./SdkClients.ts";

const only = process.argv[2];
const show = async (list: any, clients: any) => {
  for (const fault of list) {
    if (only !== undefined && !fault.name.includes(only)) continue;
    console.log(`## ${fault.name}`);
    const groups = new Map<string, string[]>();
    await Promise.all(clients.map(async (client: any) => {
      const r: any = await Promise.race([fault.run(client), new Promise((r) => setTimeout(() => r("HANGS"), 3000))]);
      const f = r.failure;
      const said = r === "HANGS" ? "HANGS" : f === undefined ? "clean" : [f.kind, f.reason ?? f.by ?? f.status ?? "", f.code ?? "", f.http2_code ?? "", f.operation ?? "", f.retry_after_ms ?? "", f.retryable ? "R" : "-", f.not_processed ? "NP" : ""].join(" ").replace(/ +/g, " ");
      groups.set(said, [...(groups.get(said) ?? []), client.name + (process.argv[3] ? ` <<${r.error?.name} ${r.error?.message} | ${r.error?.cause?.message}>>` : "")]);
    }));
    for (const [said, names] of groups) console.log(`   ${said.padEnd(60)} ${names.join(" | ")}`);
  }
};
import { helperClients } from "./Helpers.ts";
const all = process.argv[4] ? helperClients : [...rawClients, ...effectClients, ...sdkClients, ...aiSdkClients];
await show(faults, all);
await show([...statuses, ...events], all);
await show(http2Faults, http2Clients);
process.exit(0);
