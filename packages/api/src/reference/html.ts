/** HTML templates that escape their values. */

/** HTML that is written as it is. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Content = Html | string | number | false | undefined | readonly Content[];

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** A template. Its values are escaped, except Html; lists are joined; false and undefined are left out. */
export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  return new Html(strings.map((string, index) => string + markup(values[index])).join(''));
}

/** Paragraphs, **strong** and `code`: as much of Markdown as the document's descriptions use. */
export function prose(text: string): Html {
  const paragraphs = text.split(/\n{2,}/).map((paragraph) => new Html(`<p>${inline(paragraph)}</p>`));
  return html`${paragraphs}`;
}

/** The same without paragraphs. */
export function phrase(text: string): Html {
  return new Html(inline(text));
}

function inline(text: string): string {
  return escaped(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>');
}

function markup(content: Content): string {
  if (content === undefined || content === false) return '';
  if (content instanceof Html) return content.text;
  if (typeof content === 'object') return content.map(markup).join('');
  return escaped(String(content));
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
