import { assert, describe, it } from "@effect/vitest";
import { html, label, none } from "../../../src/gateway/page/Html.ts";

describe("a template of HTML", () => {
  it("escapes text in elements and in attributes", () => {
    const evil = `</b><script>alert('1')</script>" onload="x`;
    const { markup } = html`<b title="${evil}">${evil}</b>`;
    assert.strictEqual(markup.match(/[<>"]/g)?.join(""), '<""></>'.replace("</>", "><>").replace(">><>", "><>"));
    assert.include(markup, "&lt;script&gt;alert(&#39;1&#39;)");
    assert.include(markup, "&quot; onload=&quot;x");
  });

  it("accepts HTML, lists and numbers, and omits undefined values", () => {
    const rows = ["a", "<i>"].map((it) => html`<li>${it}</li>`);
    assert.strictEqual(
      html`<ul>${rows}</ul>${3}${false}${undefined}${none}`.markup,
      "<ul><li>a</li><li>&lt;i&gt;</li></ul>3",
    );
  });

  it("replaces characters that a document cannot contain or that reverse its text", () => {
    assert.strictEqual(html`${"a\u0000\u0007b\u202ec\u2066d\ud800"}`.markup, "a\ufffd\ufffdb\ufffdc\ufffdd\ufffd");
    assert.strictEqual(html`${"a\n\tb 😀 ü"}`.markup, "a\n\tb 😀 ü");
  });

  it("isolates a label's direction", () => {
    assert.strictEqual(label("שלום <").markup, '<bdi class="label">שלום &lt;</bdi>');
  });
});
