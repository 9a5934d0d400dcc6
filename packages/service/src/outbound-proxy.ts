import { startError } from './start-error.js';

/** The variables that set a proxy, in the order in which undici reads them. */
const PROXY_VARIABLES = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'];
/** Requests to these addresses never use the proxy, because a proxy on another machine cannot reach servers on this machine. */
const LOOPBACK = 'localhost,127.0.0.1,[::1]';

/**
 * Sends requests of `fetch` through the proxy in `HTTP_PROXY` or `HTTPS_PROXY`, if one is set. Requests to loopback addresses and to
 * `NO_PROXY` do not use the proxy. This is needed because Node's fetch ignores these variables before version 24.
 */
export async function useOutboundProxy(variables: NodeJS.ProcessEnv): Promise<void> {
  if (!PROXY_VARIABLES.some((name) => variables[name])) return;
  const { EnvHttpProxyAgent, setGlobalDispatcher } = await import('undici');
  const unproxied = variables['no_proxy'] ?? variables['NO_PROXY'] ?? '';
  const noProxy = unproxied.trim() === '*' ? '*' : `${unproxied},${LOOPBACK}`;
  try {
    setGlobalDispatcher(new EnvHttpProxyAgent({ noProxy, proxyTunnel: false }));
  } catch (error) {
    throw startError('HTTP_PROXY and HTTPS_PROXY must be addresses such as http://proxy.example.com:3128', error);
  }
}
