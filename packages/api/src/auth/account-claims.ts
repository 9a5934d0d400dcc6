/** Reads the claims of a token: the subject's role in each account, the names of the accounts, and the roles that apply to all accounts. */
import { isName, PLATFORM_ROLES, type PlatformRole, ROLES, type Role } from '@meterline/catalog/plain';
import { z } from 'zod';

export type ClaimPath = readonly string[];

export interface AccountClaims {
  readonly accounts: ClaimPath;
  /** Path of the claim with the display names of accounts. If undefined, tokens have no such claim. */
  readonly names: ClaimPath | undefined;
  /** Roles in tokens that make an admin; others make a member. If undefined, `admin` and `member` are used, and others give no access. */
  readonly adminRoles: readonly string[] | undefined;
  readonly platformRoles: ClaimPath | undefined;
}

export const DEFAULT_ACCOUNT_CLAIMS: AccountClaims = {
  accounts: ['accounts'],
  names: undefined,
  adminRoles: undefined,
  platformRoles: undefined,
};

export class MalformedClaim extends Error {
  override readonly name = 'MalformedClaim';
}

/** Parses a path such as `app_metadata.accounts`. A string with a colon, such as the URL `https://example.com/accounts`, is one name. */
export function claimPath(text: string): ClaimPath | undefined {
  const path = text.includes(':') ? [text] : text.split('.');
  return path.includes('') ? undefined : path;
}

export function readMemberships(claims: unknown, { accounts, names, adminRoles, platformRoles }: AccountClaims) {
  const roles = new Map<string, Role>();
  for (const [account, name] of entriesOf(claims, accounts, accountsClaim, ACCOUNT_FORMS)) {
    const role = roleOf(name, adminRoles);
    if (role) roles.set(account, role);
  }
  const accountNames = new Map<string, string>();
  for (const [account, name] of names ? entriesOf(claims, names, namesClaim, NAME_FORMS) : []) {
    if (name !== undefined) accountNames.set(account, name);
  }
  return { roles, accountNames, platformRoles: platformRolesIn(claims, platformRoles) };
}

const platformRolesClaim = z.union([z.string().transform((role) => [role]), z.array(z.string())]).default([]);

/** Ignores unknown roles, because the claim may contain roles of other services. @throws MalformedClaim */
function platformRolesIn(claims: unknown, path: ClaimPath | undefined): ReadonlySet<PlatformRole> {
  const named = platformRolesClaim.safeParse(path && claimAt(claims, path));
  if (!named.success)
    throw new MalformedClaim(`The token's claim ${path?.join('.')} must be a role or a list of roles.`);
  return new Set(PLATFORM_ROLES.filter((role) => named.data.includes(role)));
}

/** @param name undefined if the claim lists accounts without roles */
function roleOf(name: string | undefined, adminRoles: AccountClaims['adminRoles']): Role | undefined {
  if (name === undefined) return 'member';
  if (adminRoles) return adminRoles.includes(name) ? 'admin' : 'member';
  return ROLES.find((role) => role === name);
}

const id = z.string().refine(isName);
const text = z.string().min(1);

type Entry = readonly [account: string, text: string | undefined];

const accountsClaim = z.union([
  z.record(id, text).transform((roles): Entry[] => Object.entries(roles)),
  z.array(z.object({ id, role: text }).transform((entry): Entry => [entry.id, entry.role])),
  z.array(id.transform((account): Entry => [account, undefined])),
]);
const ACCOUNT_FORMS = 'an object of account ids and roles, a list of objects with id and role, or a list of ids';

const namesClaim = z.union([
  z.record(id, id).transform((names): Entry[] => Object.entries(names)),
  z.array(z.object({ id, name: id.optional() }).transform((entry): Entry => [entry.id, entry.name])),
]);
const NAME_FORMS = 'an object of account ids and names, or a list of objects with id and name';

function entriesOf(claims: unknown, path: ClaimPath, schema: z.ZodType<Entry[]>, forms: string): Entry[] {
  const claim = claimAt(claims, path);
  if (claim === undefined) return [];
  const entries = schema.safeParse(claim);
  if (!entries.success)
    throw new MalformedClaim(`The token's claim ${path.join('.')} must be ${forms}; all values must be strings.`);
  const accounts = new Set<string>();
  for (const [account] of entries.data) {
    if (accounts.has(account)) {
      throw new MalformedClaim(
        `The token's claim ${path.join('.')} names the account ${JSON.stringify(account)} twice.`,
      );
    }
    accounts.add(account);
  }
  return entries.data;
}

const object = z.record(z.string(), z.unknown());

function claimAt(claims: unknown, path: ClaimPath): unknown {
  return path.reduce((value, part, depth) => {
    if (value === undefined) return undefined;
    const parent = object.safeParse(value);
    if (parent.success) return Object.hasOwn(parent.data, part) ? parent.data[part] : undefined;
    throw new MalformedClaim(`The token's claim ${path.slice(0, depth).join('.')} must be an object.`);
  }, claims);
}
