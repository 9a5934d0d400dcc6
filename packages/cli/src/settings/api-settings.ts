/** Where the API is, which key to show it, and whose usage to ask for. */
import type { ConfigFile, LocalStackFile } from './saved-files.js';
import { canonicalUrl, type Environment, ofFlag, ofVariable, type Setting, type SettingKind } from './settings.js';

export interface ApiFlags {
  readonly apiUrl?: string;
  readonly account?: string;
  readonly debug?: boolean;
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
const DEFAULT_SETTING: Setting = { value: DEFAULT_URL, kind: 'default', source: 'the default' };

/** How the settings are found, for --help. */
export const API_SETTINGS_HELP = `
The API's address, key and account come from flags, else METERLINE_API_URL, METERLINE_API_KEY and
METERLINE_ACCOUNT, else the file that "meterline login" writes, else a local stack that runs here
(npm start), else ${DEFAULT_URL}. A key from a file goes only to the address that
stands beside it in that file. "meterline whoami" shows what is used, and where it comes from.`;

/** An address with the key and the account that were found beside it. */
interface Place {
  readonly url: string;
  readonly key: string;
  readonly account: string | undefined;
  readonly kind: SettingKind;
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
    const environment = this.#environment;
    const account = ofFlag(flags.account, '--account') ?? ofVariable(environment, 'METERLINE_ACCOUNT');
    const key = ofVariable(environment, 'METERLINE_API_KEY');
    const named = ofFlag(flags.apiUrl, '--api-url') ?? ofVariable(environment, 'METERLINE_API_URL');
    const url = named && { ...named, value: canonicalUrl(named) };
    if (url && key && account) return { url, key, account, warnings: [] };

    const config = await this.#readConfigFile();
    const matches = (candidate: Place) => url === undefined || candidate.url === url.value;
    // What a person has logged in to on purpose goes before what happens to run here.
    const login = placeOfConfig(config);
    const place = login && matches(login) ? login : await this.#stack(matches);
    return {
      url: url ?? settingOf(place, place?.url) ?? DEFAULT_SETTING,
      key: key ?? settingOf(place, place?.key),
      account: account ?? settingOf(place, place?.account),
      warnings: place?.kind === 'login file' && config?.isOpen ? [openFileWarning(config.path)] : [],
    };
  }

  /** The address of a local stack that runs here and is not asked. */
  async unusedStack({ url }: ApiAccess): Promise<Setting | undefined> {
    const stack = await this.#stack((place) => place.url !== url.value);
    return settingOf(stack, stack?.url);
  }

  async #stack(matches: (place: Place) => boolean): Promise<Place | undefined> {
    const place = placeOfStack(await this.#findLocalStack());
    return place && matches(place) ? place : undefined;
  }
}

function openFileWarning(path: string): string {
  return `others can read your key: chmod 600 ${path}`;
}

function settingOf(place: Place | undefined, value: string | undefined): Setting | undefined {
  return place && value !== undefined ? { value, kind: place.kind, source: place.source } : undefined;
}

function placeOfStack(stack: LocalStackFile | undefined): Place | undefined {
  if (!stack) return undefined;
  const { path: source, addresses } = stack;
  const url = canonicalUrl({ value: addresses.apiUrl, source });
  return { url, key: addresses.adminKey, account: addresses.account, kind: 'local stack', source };
}

function placeOfConfig(config: ConfigFile | undefined): Place | undefined {
  if (!config) return undefined;
  const { path: source, login } = config;
  const url = canonicalUrl({ value: login.apiUrl, source });
  return { url, key: login.apiKey, account: login.account, kind: 'login file', source };
}
