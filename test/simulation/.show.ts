import { generate } from "/work/main/test/simulation/Generator.ts";
import { simulate } from "/work/main/test/simulation/Simulation.ts";
const s = generate(Number(process.argv[2]));
console.log(JSON.stringify(s));
const t = await simulate(s);
for (const e of t.journal) {
  const { at, what, ...r } = e as any;
  let x: any = r;
  if (what === "seen") { const { _tag, ...q } = r.event; x = _tag + " " + JSON.stringify(_tag === "Part" ? [q.attempt, q.ordinal, q.part.serial, q.calls?.map((c: any) => c.call)] : _tag === "QuestionAsked" ? q.question.rule : q); }
  else if (what === "got") x = r.part.serial;
  else if (what === "emitted") x = r.attempt + " " + JSON.stringify(r.parts.map((p: any) => [p.serial, p.says.shows, p.says.terminal, p.says.failure?.kind, p.says.calls.map((c: any) => `${c.tool} ${c.ordinal} ${c.phase}`).join()]));
  else if (what === "written" || what === "writing") x = (r.ok ?? "") + " " + r.entries.map((w: any) => w._tag === "EvidenceNoted" ? `(${w.evidence.attempt} ${w.evidence.event} ${w.evidence.detail ?? ""})` : w._tag === "IncidentOpened" ? `Incident ${w.incident.id} a${w.incident.attempt} ${w.incident.failure.kind} ${w.incident.decision.action} ${w.incident.decision.rule} ${w.incident.status}` : w._tag === "FactsRaised" ? `Facts ${w.attempt} ${w.facts.shown} ${w.facts.tools.map((r: any) => r.call + r.phase)}` : JSON.stringify(w)).join(" | ");
  else if (what === "ended") x = r.exit._tag === "Success" ? "ok" : r.exit.cause.reasons.map((q: any) => q._tag + " " + (q.error?.message ?? q.defect ?? "") + " " + (q.error?.reason ?? "") + " " + (q.error?.rule ?? "")).join();
  else x = JSON.stringify(r);
  console.log(String(at).padStart(8), what.padEnd(16), x);
}
console.log("ended", t.ended, "closed", t.closed, "state", t.record?.state, JSON.stringify(t.record?.end));
