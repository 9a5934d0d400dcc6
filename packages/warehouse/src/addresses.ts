/** Parses addresses of ClickHouse. In a file of its own so that callers need not load the client. */
const EXAMPLE = 'http://127.0.0.1:8123';
const PROTOCOLS: readonly string[] = ['http:', 'https:'];

/** @param urls one address, or several separated by commas */
export function hostsOf(urls: string): string[] {
  return urls.split(',').map((url) => url.trim());
}

/**
 * Validates addresses of ClickHouse's HTTP interface, separated by commas. Returns undefined if they are valid, and otherwise an error
 * message to append to the name of the setting. A path, credentials or parameters are rejected, because they would be ignored. The message
 * does not repeat the address, which may hold a password.
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
    `must be a URL such as ${EXAMPLE} and nothing more: set user, password and database with ` +
    'CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE'
  );
}
