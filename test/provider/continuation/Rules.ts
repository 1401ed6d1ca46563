/**
 * Holds a request body against the rules of its protocol that a continuation could break. It shares no code with the builders.
 */

type Fields = { readonly [name: string]: unknown };
// Everything here is JSON; what is not there reads as nothing.
const fields = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});
const list = (value: unknown): ReadonlyArray<Fields> => (Array.isArray(value) ? value.map(fields) : []);
const string = (value: unknown): string => (typeof value === "string" ? value : "");

/** What is wrong with a body; empty when nothing is. */
export type Check = (body: unknown) => ReadonlyArray<string>;

const pairs = (name: string, calls: ReadonlyArray<string>, results: ReadonlyArray<string>): ReadonlyArray<string> => {
  const problems: Array<string> = [];
  if (new Set(calls).size !== calls.length) problems.push(`${name}: an id twice: ${calls}`);
  if (new Set(results).size !== results.length) problems.push(`${name}: a call with two results: ${results}`);
  for (const id of calls) if (!results.includes(id)) problems.push(`${name}: the call ${id} dangles`);
  for (const id of results) if (!calls.includes(id)) problems.push(`${name}: a result without the call ${id}`);
  return problems;
};

const alternate = (roles: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...roles.flatMap((role, at) => (role === roles[at + 1] ? [`two messages of ${role}`] : [])),
  ...(["assistant", "model"].includes(roles.at(-1) ?? "") ? ["ends with the assistant"] : []),
];

const anthropic: Check = (body) => {
  const messages = list(fields(body).messages);
  const problems = [...alternate(messages.map((message) => string(message.role)))];
  const ids: Array<string> = [];
  messages.forEach((message, at) => {
    const blocks =
      typeof message.content === "string" ? [{ type: "text", text: message.content }] : list(message.content);
    if (blocks.length === 0) problems.push("an empty message");
    for (const block of blocks) {
      if (block.type === "text" && string(block.text).trim() === "") problems.push("a blank text");
      if (block.type === "thinking" && string(block.signature) === "") problems.push("thinking without a signature");
      if (block.type === "tool_use" && (Array.isArray(block.input) || typeof block.input !== "object"))
        problems.push("an input that is no object");
    }
    const first = blocks.findIndex((block) => block.type !== "tool_result");
    if (first !== -1 && blocks.slice(first).some((block) => block.type === "tool_result"))
      problems.push("a result behind other content");
    if (message.role !== "assistant") {
      if (at === 0 && blocks.some((block) => block.type === "tool_result")) problems.push("a result in front");
      return;
    }
    if (/thinking$/.test(string(blocks.at(-1)?.type))) problems.push("thinking at the end");
    const own = blocks.filter((block) => block.type === "tool_use").map((block) => string(block.id));
    ids.push(...own);
    const results = list(messages[at + 1]?.content).filter((block) => block.type === "tool_result");
    problems.push(
      ...pairs(
        `message ${at}`,
        own,
        results.map((block) => string(block.tool_use_id)),
      ),
    );
    const hosted = blocks.filter((block) => /._tool_use$/.test(string(block.type))).map((block) => string(block.id));
    const told = blocks.filter((block) => /._tool_result$/.test(string(block.type)));
    problems.push(
      ...pairs(
        `hosted ${at}`,
        hosted,
        told.map((block) => string(block.tool_use_id)),
      ),
    );
  });
  if (new Set(ids).size !== ids.length) problems.push(`ids stand twice: ${ids}`);
  return problems;
};

const chat: Check = (body) => {
  const messages = list(fields(body).messages);
  const problems: Array<string> = [];
  if (messages.at(-1)?.role === "assistant") problems.push("ends with the assistant");
  messages.forEach((message, at) => {
    const next = messages[at + 1];
    if (message.role === next?.role && message.role !== "tool") problems.push(`two messages of ${message.role}`);
    if (message.role === "tool" && !["assistant", "tool"].includes(string(messages[at - 1]?.role)))
      problems.push("a result that follows no call");
    if (message.role !== "assistant") return;
    const calls = list(message.tool_calls);
    if (calls.length === 0 && message.function_call === undefined && string(message.content).trim() === "")
      problems.push("an empty assistant message");
    const results = messages.slice(at + 1);
    const end = results.findIndex((it) => it.role !== "tool");
    const own = end === -1 ? results : results.slice(0, end);
    problems.push(
      ...pairs(
        `message ${at}`,
        calls.map((call) => string(call.id)),
        own.map((it) => string(it.tool_call_id)),
      ),
    );
    for (const call of calls) if (string(call.id) === "") problems.push("a call without an id");
  });
  return problems;
};

const responses: Check = (body) => {
  const items = list(fields(body).input);
  const problems: Array<string> = [];
  const last = items.at(-1);
  if (last?.role === "assistant" || last?.type === "reasoning") problems.push("ends with the assistant");
  // A hosted call has its result in itself; its call_id is a label at some servers.
  const isCall = (item: Fields) =>
    /^(function|custom_tool|local_shell|shell|apply_patch|computer)_call$/.test(string(item.type));
  const isOutput = (item: Fields) => /_call_output$/.test(string(item.type));
  problems.push(
    ...pairs(
      "input",
      items.filter(isCall).map((it) => string(it.call_id)),
      items.filter(isOutput).map((it) => string(it.call_id)),
    ),
  );
  const requests = items.filter((item) => item.type === "mcp_approval_request").map((item) => string(item.id));
  const answers = items.filter((item) => item.type === "mcp_approval_response");
  problems.push(
    ...pairs(
      "approvals",
      requests,
      answers.map((item) => string(item.approval_request_id)),
    ),
  );
  items.forEach((item, at) => {
    if (item.type !== "reasoning") return;
    if (string(item.encrypted_content) === "") problems.push("reasoning that only the provider may have");
    const next = items.slice(at + 1).find((it) => it.type !== "reasoning");
    if (next === undefined || next.role === "user" || isOutput(next)) problems.push("reasoning without its item");
  });
  const closed = items.findLastIndex((item) => isOutput(item) && item.type !== "shell_call_output");
  if (closed !== -1 && items.slice(closed).some((item) => item.role === "assistant"))
    problems.push("prose behind results");
  return problems;
};

const gemini: Check = (body) => {
  const outer = fields(body);
  const contents = list(outer.contents ?? fields(outer.request).contents);
  const problems = [...alternate(contents.map((content) => string(content.role)))];
  contents.forEach((content, at) => {
    const parts = list(content.parts);
    if (parts.length === 0) problems.push("an empty content");
    if (content.role !== "model") return;
    const name = (value: unknown) => `${string(fields(value).id)}/${string(fields(value).name)}`;
    const calls = parts.filter((part) => part.functionCall !== undefined).map((part) => name(part.functionCall));
    const behind = list(contents[at + 1]?.parts).filter((part) => part.functionResponse !== undefined);
    const results = behind.map((part) => name(part.functionResponse));
    if (calls.join() !== results.join()) problems.push(`calls ${calls} answered by ${results}`);
    const code = (field: string) => parts.filter((part) => part[field] !== undefined).length;
    if (code("executableCode") !== code("codeExecutionResult")) problems.push("code without its result");
    if (parts.some((part) => part.thought === true && part.thoughtSignature === undefined)) problems.push("a thought");
  });
  return problems;
};

export const checks = {
  "anthropic-messages": anthropic,
  "openai-chat": chat,
  "openai-responses": responses,
  "google-gemini": gemini,
} as const;
