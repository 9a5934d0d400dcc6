/** Walks the pages of an answer. A walk whose answer changes under it starts again, once. */
import { counted } from '@meterline/catalog/questions';
import { MeterlineError } from '@meterline/client';
import { CommandError } from '../command.js';

export interface Step<Page> {
  readonly page: Page;
  /** Empty after the last page. */
  readonly nextCursor: string;
}

export interface Walk<Page> {
  /** Of the first page to read; undefined for the first of all. */
  readonly cursor: string | undefined;
  /** Every page, not one. */
  readonly all: boolean;
  readonly read: (cursor: string | undefined) => Promise<Step<Page>>;
  /** The walk starts again. */
  readonly onRestart: () => void;
  /** Forgets the pages that were taken, so that the walk can start again; left out where they are printed already. */
  readonly discard?: (() => void) | undefined;
}

/**
 * The first page comes with the second one: that is where the service proves that both are of one answer, so an answer that
 * changed can be asked for again before anything is printed.
 * @throws CommandError when the answer changed twice, or after pages that cannot be taken back
 */
export async function* walk<Page>(asked: Walk<Page>): AsyncGenerator<Page> {
  const { cursor, onRestart, discard } = asked;
  for (let isFirstTry = true; ; isFirstTry = false) {
    let taken = 0;
    try {
      for await (const page of pagesOf(asked)) {
        taken += 1;
        yield page;
      }
      return;
    } catch (error) {
      if (!(error instanceof MeterlineError) || error.code !== 'cursor_expired') throw error;
      if (cursor) throw gone(error, 'start again, without --cursor');
      if (!isFirstTry) throw gone(error, 'run the command again, or end the window earlier with --to');
      if (taken > 0 && !discard) throw gone(error, `${counted(taken, 'page')} of it came; run the command again`);
      discard?.();
      onRestart();
    }
  }
}

async function* pagesOf<Page>({ cursor, all, read }: Walk<Page>): AsyncGenerator<Page> {
  const first = await read(cursor);
  if (!all || first.nextCursor === '') return yield first.page;
  let step = await read(first.nextCursor);
  yield first.page;
  yield step.page;
  while (step.nextCursor !== '') {
    step = await read(step.nextCursor);
    yield step.page;
  }
}

function gone(cause: MeterlineError, advice: string): CommandError {
  return new CommandError(`the answer changed while its pages were read: ${advice}`, undefined, { cause });
}
