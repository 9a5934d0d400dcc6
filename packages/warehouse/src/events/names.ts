/**
 * Texts by number: what events are called (accounts, workspaces, resources, types, dimensions) repeats from event to event.
 * Number 0 is the empty text. It only grows; when it {@link isLarge}, start a new one.
 */
export class Names {
  readonly #numbers = new Map<string, number>([['', 0]]);
  readonly #texts: string[] = [''];
  #characters = 0;

  get size(): number {
    return this.#texts.length;
  }

  /** Some tens of megabytes: there may be as many uuids of resources as events. */
  get isLarge(): boolean {
    return this.#texts.length > 65_536 || this.#characters > 4_000_000;
  }

  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const number = this.#texts.length;
    this.#numbers.set(text, number);
    this.#texts.push(text);
    this.#characters += text.length;
    return number;
  }

  /** @throws RangeError for a number that no text has */
  textOf(number: number): string {
    const text = this.#texts[number];
    if (text === undefined) throw new RangeError(`no text has the number ${number}`);
    return text;
  }
}
