/** A string, a mark, or anything else up to the next of them: numbers are copied, so that they keep every digit. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** JSON with a member a line. Text that is not JSON comes out with other blanks. */
export function indentJson(text: string): string {
  let depth = 0;
  let before = '';
  let out = '';
  const newLine = () => `\n${'  '.repeat(depth)}`;
  for (const [token] of text.matchAll(TOKEN)) {
    const opened = before === '{' || before === '[';
    if (token === '}' || token === ']') {
      depth -= 1;
      out += opened ? token : newLine() + token;
    } else {
      if (opened || before === ',') out += newLine();
      out += token === ':' ? ': ' : token;
      if (token === '{' || token === '[') depth += 1;
    }
    before = token;
  }
  return out;
}
