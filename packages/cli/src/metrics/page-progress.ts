import { counted } from '@meterline/catalog/questions';
import { type CommandStreams, say } from '../command.js';

/** Pages between two lines where there is no terminal. */
const PAGES_PER_LINE = 10;

/** How far a walk has come: one line that is written over on a terminal, a line now and then elsewhere. */
export class PageProgress {
  readonly #streams: Pick<CommandStreams, 'stderr'>;
  readonly #noun: string;
  #pages = 0;
  #items = 0;

  /** @param noun what the pages have */
  constructor(streams: Pick<CommandStreams, 'stderr'>, noun = 'group') {
    this.#streams = streams;
    this.#noun = noun;
  }

  page(items: number): void {
    this.#pages += 1;
    this.#items += items;
    const { stderr } = this.#streams;
    if (stderr.isTTY) stderr.write(`\r${this.#text()}`);
    else if (this.#pages % PAGES_PER_LINE === 0) say(this.#streams, this.#text());
  }

  restart(): void {
    this.end();
    this.#pages = 0;
    this.#items = 0;
  }

  end(): void {
    const { stderr } = this.#streams;
    if (this.#pages === 0) return;
    if (stderr.isTTY) stderr.write('\r\u001b[K');
    else say(this.#streams, this.#text());
  }

  #text(): string {
    return `Read ${counted(this.#items, this.#noun)} on ${counted(this.#pages, 'page')}.`;
  }
}
