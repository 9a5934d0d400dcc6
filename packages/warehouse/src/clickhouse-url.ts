/** What a ClickHouse address may say. The client would let a path, credentials or parameters in it override our own settings. */

const EXAMPLE = 'http://127.0.0.1:8123';
const PROTOCOLS: readonly string[] = ['http:', 'https:'];

/**
 * What is wrong with an address of ClickHouse's HTTP interface, to follow the name of where it came from; undefined
 * when nothing is. The address itself is not repeated: it may hold a password.
 */
export function clickHouseUrlFault(text: string): string | undefined {
  if (!URL.canParse(text)) return `must be a URL such as ${EXAMPLE}`;
  const { protocol, username, password, pathname, search, hash } = new URL(text);
  if (!PROTOCOLS.includes(protocol)) return `must be a URL such as ${EXAMPLE}`;
  const more = [username, password, pathname === '/' ? '' : pathname, search, hash].some((part) => part !== '');
  if (!more) return undefined;
  return (
    `must be a URL such as ${EXAMPLE} and nothing more: user, password and database are named by ` +
    'CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE'
  );
}
