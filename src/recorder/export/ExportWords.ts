/**
 * The words that exported names may consist of, from tools, models, providers and this package's own reports.
 *
 * This is a list and not a pattern, because a pattern cannot distinguish `hunter2` from a tool, or a key from a model. A name with other
 * words is numbered. To export it, add its words here or list it in `ExportOptions.names`. The words of error codes are in ErrorLabel.ts.
 */
const split = (text: string): ReadonlyArray<string> => text.split(/\s+/).filter((word) => word !== "");

/** Words in the names of tools that agents and providers ship, and in finish reasons, rules and reports. */
export const words: ReadonlySet<string> = new Set(
  split(`accept accepted action actions add advisor agent agents all alpha already analysis analyze analyzer and
  append apply approval ask asset assistant attempt auto bash block blocklist bm25 branch browse browser budget
  build bulk by calculator calendar call caller calling calls candidate card cell change check checkout clear
  click close cmd codebase codesearch collect collections command commit compact compile complete completed
  completion computer config conflicts console consumer content copy count crashed create credential current
  cursor custom data database datetime debug default defer delegate delete deploy describe diagnostics did diff
  dir directories directory disk dispatched docs document domain done download draw drive echo edit editor email
  embed enter enterprise error event events exec execute executed execution explore export extract fail fetched
  figma files filter find finished first fix folded folder followup for form from function get git github gitlab
  glob go google grep guarded handed handoff hover html http identity idle image images import in incomplete
  index input inputs insert inspect interpreter issue issues it javascript jira job jobs json keyword kill
  knowledge language last late later length library lifecycle lint list lists live load local location logs
  lookup ls lsp mail malformed maps markdown math max mcp media memory merge meter mkdir move multi navigate new
  none not note notebook notes nothing notify now number only open other outcome output over page pages parallel
  part partial patch path paths pause pdf phase ping plan play policy post premium preview print process product
  program programmatic progress prohibited project provider pull push python query question questions ran read
  reader reasoning rebase recall recitation record recovered recovery refund refusal refused regex remember
  remove rename repl replace replay replicate report reports request restart result results resume retrieval
  reverse review rg rm route row rows rule run running runtime safe safety save schedule screen screenshot
  script scripted scroll search searches sed select semantic send sequence server settled sheet shell ship show
  shown side silence sketch skill skills slack sleep snippet snippets spawn spent spii sql standard start
  started state status stdin step stop stopped store str strict stricter string structured subagent submit
  success summarize summary switch symbol sync table task tasks term terminal test tests text think thinking
  thread threads ticket tickets to todo todoread todos todowrite together tokens tool toolset total transfer
  translate tree truncated turn type undo unexpected unit unknown unlink unrecorded untrusted update updates upload url
  usage user validate video view visit wait watch watchdog weather web webfetch websearch website window with
  wolfram word work worker workflow worktree write writer yield zip`),
);

/** Words of model and provider families. Only names with one of these words may have as many digits as a model (`modelDigitsMax`). */
export const families: ReadonlySet<string> = new Set(
  split(`ai21 aion alibaba amazon anthropic arcee aws azure baidu bedrock bytedance cerebras chatgpt claude
  codestral codex cogito cohere command copilot dall davinci deepinfra deepseek devstral doubao embedding ernie
  exaone fireworks flux gemini gemma glm google gpt granite grok groq hermes hunyuan hyperbolic ibm imagen
  inception inflection internlm jamba kimi liquid litellm llama lmstudio longcat magistral mercury meta
  microsoft mimo minimax ministral mistral mistralai mixtral moonshot moonshotai nebius nemotron nous
  nousresearch nova novita nvidia o1 o3 o4 ollama olmo openai opencode openrouter palm perplexity phi pixtral
  qianfan qwen qwq sambanova siliconflow sonar stability stepfun switchpoint tencent titan upstage vercel vertex
  vllm voxtral whisper xai yi zai zhipu zhipuai`),
);

/** Further words in model names. */
export const modelWords: ReadonlySet<string> = new Set(
  split(`ada ai air apac api audio base beta chat claude code coder compat compatible completions creative custom
  deep dev distill edge eu exp experimental fast flash free global haiku hd high image instant instruct internal
  it large latest light lite live local lora low maverick max medium messages micro mini model moe multimodal
  nano next omni online opus oss plus premier preview pro quick r realtime reasoner reasoning research responses
  scout search small sonnet spark speech studio super test thinking tiny tts turbo ultra us versatile version
  vision vl voice x z`),
);

/** Returns true if a vendor may precede the single slash of a routed model id, for example in `openai/gpt-5`. */
export const isVendor = (name: string): boolean => families.has(name) || routed.has(name);

const routed: ReadonlySet<string> = new Set(["meta-llama", "x-ai", "z-ai", "ibm-granite", "arcee-ai"]);
