/** How far a command has come, on standard error: a line that is written over on a terminal, a line now and then elsewhere. */
import { counted } from '@meterline/catalog/plain';
import { SingleBar } from 'cli-progress';
import { type CommandContext, formatCount, say } from '../command.js';

/** How far an operation has come. Called with 0 done before the first step. */
export type OnProgress = (done: number, total: number) => void;

/** The progress of an operation, which says by itself how much there is to do. @param labelOf the label for so many */
export async function withProgress<T>(
  context: Pick<CommandContext, 'stderr'>,
  labelOf: (total: number) => string,
  work: (onProgress: OnProgress) => Promise<T>,
): Promise<T> {
  let shown: Shown | undefined;
  try {
    return await work((done, total) => {
      if (done > 0) return shown?.update(done);
      shown?.stop();
      shown = context.stderr.isTTY ? bar(context, labelOf(total), total) : lines(context, labelOf(total), total);
    });
  } finally {
    shown?.stop();
  }
}

interface Shown {
  update(done: number): void;
  stop(): void;
}

function bar({ stderr: stream }: Pick<CommandContext, 'stderr'>, label: string, total: number): Shown {
  const format = `${label} {bar} {percentage}% {duration_formatted}`;
  const shown = new SingleBar({ format, stream, barCompleteChar: '█', barIncompleteChar: '░', hideCursor: true });
  shown.start(total, 0);
  return shown;
}

/** A line for every tenth of the way. */
function lines(context: Pick<CommandContext, 'stderr'>, label: string, total: number): Shown {
  say(context, `${label} …`);
  let shownTenths = 0;
  const update = (done: number) => {
    const tenths = Math.floor((10 * done) / total);
    if (tenths <= shownTenths || done >= total) return;
    shownTenths = tenths;
    say(context, `${label}: ${formatCount(done)} done`);
  };
  return { update, stop: () => undefined };
}

/** Pages between two lines where there is no terminal. */
const PAGES_PER_LINE = 10;

/** How many pages have been read: nobody knows how many there are. */
export class PageProgress {
  readonly #streams: Pick<CommandContext, 'stderr'>;
  readonly #noun: string;
  #pages = 0;
  #items = 0;

  /** @param noun what the pages have */
  constructor(streams: Pick<CommandContext, 'stderr'>, noun: string) {
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

  /** The pages come again. */
  restart(): void {
    this.end();
    if (this.#pages > 0) say(this.#streams, 'The answer changed while its pages were read; reading it again.');
    [this.#pages, this.#items] = [0, 0];
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
