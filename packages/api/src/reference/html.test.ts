import { describe, expect, it } from '@jest/globals';
import { Html, html, phrase, prose } from './html.js';

describe('a page', () => {
  it('shows text as text', () => {
    const text = `<script>alert("1 & 'x'")</script>`;
    expect(html`<p title="${text}">${text}</p>`.text).toBe(
      '<p title="&lt;script&gt;alert(&quot;1 &amp; &#39;x&#39;&quot;)&lt;/script&gt;">&lt;script&gt;alert(&quot;1 &amp; &#39;x&#39;&quot;)&lt;/script&gt;</p>',
    );
  });

  it('nests markup and lists, and leaves out what is not there', () => {
    expect(html`${[html`<b>${1}</b>`, ['<', new Html('<i>')]]}${false}${undefined}${0}`.text).toBe('<b>1</b>&lt;<i>0');
  });

  it('has paragraphs, emphasis and code, in which nothing is markup', () => {
    expect(prose('One **two** `<b>`.\n\nThree.').text).toBe(
      '<p>One <strong>two</strong> <code>&lt;b&gt;</code>.</p><p>Three.</p>',
    );
    expect(phrase('a < b').text).toBe('a &lt; b');
  });
});
