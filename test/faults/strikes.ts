/** What may strike any server: it is killed and started again, or away for a while. */
import type { Scene } from './fault.js';
import { pause } from './waiting.js';

interface Killable {
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** Once or twice. @param next the server that is killed next */
export async function killAndStart({ random, signal }: Scene, next: () => Killable | Promise<Killable>): Promise<void> {
  for (let times = random.integer(1, 2); times > 0; times -= 1) {
    const server = await next();
    await server.kill();
    await pause(random.integer(0, 3_000), signal);
    await server.start();
    await pause(random.integer(0, 600), signal);
  }
}

/** Until a while is over, one of those given in the long form, and however it ends. @param comeBack undoes what was done */
export async function awayFor(
  longMs: readonly number[],
  { random, brief, signal }: Scene,
  comeBack: () => void,
): Promise<void> {
  try {
    await pause(brief ? 3_000 : random.pick(longMs), signal);
  } finally {
    comeBack();
  }
}
