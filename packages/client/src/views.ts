/** Manages saved views, which are named queries of the web page. The API stores them. */
import { type SavedViewResponse, savedViewPageSchema, savedViewSchema } from '@meterline/catalog';
import { accountPath, pathSegment, type RequestOptions, type Transport } from './transport.js';

/** Admins can change views. Members can read views that do not use workspaces. Throws like {@link MeterlineClient}. */
export class ViewsClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Returns all views of the account, by name. */
  async list(account: string, options: RequestOptions = {}): Promise<SavedViewResponse[]> {
    return this.#transport.list(pathOf(account), 'name:asc', savedViewPageSchema, options);
  }

  async get(account: string, name: string, options: RequestOptions = {}): Promise<SavedViewResponse> {
    return this.#transport.read(pathOf(account, name), savedViewSchema, options);
  }

  /** Creates the view or replaces its query. @param query the part of the page's address after the question mark, without the account */
  async save(
    account: string,
    name: string,
    query: string,
    { signal }: RequestOptions = {},
  ): Promise<SavedViewResponse> {
    const call = { method: 'PUT', path: pathOf(account, name), body: { query }, signal, isRepeatable: true } as const;
    return this.#transport.call(call, savedViewSchema);
  }

  async delete(account: string, name: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.remove(pathOf(account, name), options);
  }
}

function pathOf(account: string, name?: string): string {
  return `${accountPath(account)}/views${name === undefined ? '' : `/${pathSegment(name)}`}`;
}
