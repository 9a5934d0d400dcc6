import { createInterface } from 'node:readline';
import type { CommandContext } from './command-context.js';
import { CommandError } from './command-error.js';

/**
 * Asks on stderr, and goes on only after exactly this answer on standard input.
 * @throws CommandError after any other answer, or none
 */
export async function requireAnswer({ stdin, stderr }: CommandContext, question: string, answer: string) {
  stderr.write(`${question} `);
  const lines = createInterface({ input: stdin });
  try {
    for await (const line of lines) {
      if (line.trim() === answer) return;
      break;
    }
  } finally {
    lines.close();
  }
  throw new CommandError('not confirmed; nothing was changed');
}
