/** Where the API is, which key to show it, and whose usage to ask for. */
import { usageError } from '../command.js';
import type { ConfigFile, LocalStackFile } from './saved-files.js';
import { type Environment, type Setting, setting } from './settings.js';

export interface ApiFlags {
  readonly apiUrl?: string;
  readonly account?: string;
}

export interface ApiAccess {
  /** Without a slash at its end. */
  readonly url: Setting;
  /** Undefined when there is none for this address. */
  readonly key: Setting | undefined;
  /** Undefined when nothing names one. */
  readonly account: Setting | undefined;
  /** What the person should know, such as a file that others can read. */
  readonly warnings: readonly string[];
}

const DEFAULT_URL = 'http://127.0.0.1:8080';

/** How the settings are found, for --help. */
export const API_SETTINGS_HELP = `
The API's address, key and account come from flags, else METERLINE_API_URL, METERLINE_API_KEY and
METERLINE_ACCOUNT, else a local stack that runs here (npm start), else the file that
"meterline login" writes, else ${DEFAULT_URL}. A key from a file goes only to the address
that stands beside it in that file.`;

/** An address with the key and the account that were found beside it. */
interface Place {
  readonly url: string;
  readonly key: string;
  readonly account: string | undefined;
  readonly source: string;
}

export class ApiSettings {
  readonly #environment: Environment;
  readonly #findLocalStack: () => Promise<LocalStackFile | undefined>;
  readonly #readConfigFile: () => Promise<ConfigFile | undefined>;

  /** @param findLocalStack and the other: asked only when flags and environment leave something open */
  constructor(
    environment: Environment,
    findLocalStack: () => Promise<LocalStackFile | undefined>,
    readConfigFile: () => Promise<ConfigFile | undefined>,
  ) {
    this.#environment = environment;
    this.#findLocalStack = findLocalStack;
    this.#readConfigFile = readConfigFile;
  }

  /** @throws CommandError when an address or a file cannot be used */
  async access(flags: ApiFlags): Promise<ApiAccess> {
    const { METERLINE_ACCOUNT, METERLINE_API_KEY, METERLINE_API_URL } = this.#environment;
    const account = setting(flags.account, '--account') ?? setting(METERLINE_ACCOUNT, 'METERLINE_ACCOUNT');
    const key = setting(METERLINE_API_KEY, 'METERLINE_API_KEY');
    const named = setting(flags.apiUrl, '--api-url') ?? setting(METERLINE_API_URL, 'METERLINE_API_URL');
    const url = named && { ...named, value: canonicalUrl(named) };
    if (url && key && account) return { url, key, account, warnings: [] };

    const stack = await this.#findLocalStack();
    const config = await this.#readConfigFile();
    const places = [...placeOfStack(stack), ...placeOfConfig(config)];
    const place = url ? places.find((candidate) => candidate.url === url.value) : places[0];
    const usesConfig = place !== undefined && place.source === config?.path;
    return {
      url: url ?? setting(place?.url, place?.source) ?? { value: DEFAULT_URL, source: 'the default' },
      key: key ?? setting(place?.key, place?.source),
      account: account ?? setting(place?.account, place?.source),
      warnings: usesConfig && config.isOpen ? [`others can read your key: chmod 600 ${config.path}`] : [],
    };
  }
}

/** One form of an address, so that two can be compared. @throws CommandError when it is none of the web's */
export function canonicalUrl({ value, source }: Setting): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw usageError(`the address from ${source} must be a URL such as https://billing.example.com`);
  }
  if (url.username || url.password || url.search || url.hash) {
    throw usageError(`the address from ${source} must be a URL without credentials, ? and #`);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/v0$/, '');
}

function placeOfStack(stack: LocalStackFile | undefined): Place[] {
  if (!stack) return [];
  const { path: source, addresses } = stack;
  const url = canonicalUrl({ value: addresses.apiUrl, source });
  return [{ url, key: addresses.adminKey, account: addresses.account, source }];
}

function placeOfConfig(config: ConfigFile | undefined): Place[] {
  if (!config) return [];
  const { path: source, login } = config;
  return [{ url: canonicalUrl({ value: login.apiUrl, source }), key: login.apiKey, account: login.account, source }];
}
