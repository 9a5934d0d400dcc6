/** Addresses of ClickHouse, as text: apart from the connections to it, for those who connect to nothing. */
const EXAMPLE = 'http://127.0.0.1:8123';
const PROTOCOLS: readonly string[] = ['http:', 'https:'];

/** @param urls one address, or several that are separated by commas */
export function hostsOf(urls: string): string[] {
  return urls.split(',').map((url) => url.trim());
}

/**
 * What is wrong with the addresses of ClickHouse's HTTP interface, separated by commas, to follow the name of where it came from; undefined
 * when nothing is. A path, credentials or parameters in one would be ignored. The address itself is not repeated: it may
 * hold a password.
 */
export function clickHouseUrlProblem(text: string): string | undefined {
  return hostsOf(text)
    .map(urlProblem)
    .find((problem) => problem !== undefined);
}

function urlProblem(text: string): string | undefined {
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
