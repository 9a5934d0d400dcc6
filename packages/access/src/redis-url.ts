/** What a Redis address may say. The client would take any path for a database and any parameter for one of its options. */

const EXAMPLE = 'redis://127.0.0.1:6379';
const PROTOCOLS: readonly string[] = ['redis:', 'rediss:'];
const DATABASE = /^\/?\d{0,5}$/;

/**
 * What is wrong with an address of a Redis, to follow the name of where it came from; undefined when nothing is. The
 * address itself is not repeated: it may hold a password.
 */
export function redisUrlFault(text: string): string | undefined {
  if (!URL.canParse(text)) return `must be a URL such as ${EXAMPLE}`;
  const { protocol, hostname, pathname, search, hash } = new URL(text);
  if (!PROTOCOLS.includes(protocol) || hostname === '') return `must be a URL such as ${EXAMPLE}`;
  if (DATABASE.test(pathname) && search === '' && hash === '') return undefined;
  return `must be a URL such as ${EXAMPLE} with nothing after it but the number of a database, such as /1`;
}
