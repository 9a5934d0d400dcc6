/** The text of bytes that are ASCII if they are what is asked for: any other byte becomes a character that is no part of it. */
export function asciiText(data: Uint8Array, from: number, to: number): string {
  let text = '';
  for (let at = from; at < to; at += 1) text += String.fromCharCode(data[at] ?? 0);
  return text;
}
