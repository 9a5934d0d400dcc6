/**
 * Checks a data set against the rules of FOCUS 1.2. Source: FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec at tag v1.2,
 * specification/columns, "Content constraints", and the "Requirements" of columns and attributes.
 */
import { decimalText, sumDecimals } from '@meterline/catalog';

/** Null Handling: no empty text and no placeholder in place of null. */
const FORMATS = {
  String: /^(?!\s*$)(?!(?:null|n\/a|not applicable|none)$)/iu,
  Decimal: /^-?\d+(\.\d+)?$/,
  'Date/Time': /^\d{4}-(0\d|1[0-2])-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\dZ$/,
  JSON: /^\{.*\}$/s,
} as const;

type Kind = readonly [
  level: 'Mandatory' | 'Conditional' | 'Recommended',
  type: keyof typeof FORMATS,
  nulls: boolean,
  names: string,
];

const KINDS: readonly Kind[] = [
  ['Mandatory', 'Decimal', false, 'BilledCost ContractedCost EffectiveCost ListCost'],
  ['Mandatory', 'Decimal', true, 'PricingQuantity'],
  ['Mandatory', 'Date/Time', false, 'BillingPeriodEnd BillingPeriodStart ChargePeriodEnd ChargePeriodStart'],
  ['Mandatory', 'String', false, 'BillingAccountId BillingCurrency ChargeCategory InvoiceIssuerName ProviderName'],
  ['Mandatory', 'String', false, 'PublisherName ServiceCategory ServiceName'],
  ['Mandatory', 'String', true, 'BillingAccountName ChargeClass ChargeDescription PricingUnit'],
  ['Recommended', 'String', false, 'ChargeFrequency ServiceSubcategory'],
  ['Recommended', 'String', true, 'InvoiceId'],
  ['Conditional', 'Decimal', true, 'ConsumedQuantity'],
  ['Conditional', 'String', true, 'ConsumedUnit ResourceId ResourceName ResourceType'],
  ['Conditional', 'String', true, 'SkuId SkuMeter SkuPriceId SubAccountId SubAccountName'],
  ['Conditional', 'JSON', true, 'SkuPriceDetails'],
];

/** The columns of the specification whose conditions hold here, in its alphabetical order. Decision 0029 has the others. */
export const SPECIFICATION = KINDS.flatMap(([level, type, nulls, names]) =>
  names.split(' ').map((name) => ({ name, level, type, nulls })),
).sort((a, b) => (a.name < b.name ? -1 : 1));

/** The subcategories of the categories that the export uses. */
const SUBCATEGORIES: Readonly<Record<string, readonly string[]>> = {
  'AI and Machine Learning': [
    ...['AI Platforms', 'Bots', 'Generative AI', 'Machine Learning', 'Natural Language Processing'],
    'Other (AI and Machine Learning)',
  ],
  Compute: [
    ...['Containers', 'End User Computing', 'Quantum Compute', 'Serverless Compute', 'Virtual Machines'],
    'Other (Compute)',
  ],
  Networking: [
    ...['Application Networking', 'Content Delivery', 'Network Connectivity', 'Network Infrastructure'],
    ...['Network Routing', 'Network Security', 'Other (Networking)'],
  ],
  Storage: [
    ...['Backup Storage', 'Block Storage', 'File Storage', 'Object Storage', 'Storage Platforms', 'Other (Storage)'],
  ],
  Other: ['Other (Other)'],
};

const UNITS = /^(\d+ )?(GB|Count|Units|Requests|Hours|Seconds)(-(Seconds|Hours|Days|Months))?$/;

const ALLOWED: Readonly<Record<string, RegExp>> = {
  BillingCurrency: /^USD$/,
  ChargeCategory: /^(Usage|Purchase|Tax|Credit|Adjustment)$/,
  ChargeClass: /^Correction$/,
  ChargeFrequency: /^(One-Time|Recurring|Usage-Based)$/,
  PricingUnit: UNITS,
  ConsumedUnit: UNITS,
};

/** A row by column. */
export type FocusRow = Readonly<Record<string, string | null>>;

export interface DataSet {
  readonly columns: readonly string[];
  readonly rows: readonly FocusRow[];
}

/** Reads RFC 4180 with CRLF; an empty cell is null unless it is quoted. @throws Error for anything else */
export function parseCsv(text: string): DataSet {
  const lines: (string | null)[][] = [[]];
  let read = 0;
  for (const [all, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy)) {
    lines.at(-1)?.push(quoted?.replaceAll('""', '"') ?? (plain || null));
    if (end === '\r\n') lines.push([]);
    read += all.length;
  }
  if (read !== text.length || lines.pop()?.length !== 0)
    throw new Error(`not CSV at ${read}: ${text.slice(read, read + 40)}`);
  const [heading = [], ...rows] = lines;
  const columns = heading.map((name) => name ?? '');
  return {
    columns,
    rows: rows.map((cells) => {
      if (cells.length !== columns.length) throw new Error(`${cells.length} cells under ${columns.length} columns`);
      return Object.fromEntries(columns.map((name, index) => [name, cells[index] ?? null]));
    }),
  };
}

/** Every rule that the data set breaks, in words. */
export function faultsOf({ columns, rows }: DataSet): string[] {
  const ofRows = rows.flatMap((row, index) =>
    [...cellFaults(columns, row), ...rowFaults(row)].map((fault) => `row ${index + 1}: ${fault}`),
  );
  return [...headingFaults(columns), ...ofRows, ...setFaults(rows)];
}

/** Column Handling, and the presence of columns. */
function headingFaults(columns: readonly string[]): string[] {
  const names = SPECIFICATION.map(({ name }) => name);
  const expected = names.filter((name) => columns.includes(name));
  const custom = columns.filter((name) => !names.includes(name));
  const missing = SPECIFICATION.filter(({ name }) => !columns.includes(name));
  return [
    ...missing.map(({ name, level }) => `${name} (${level}) is missing`),
    ...custom
      .filter((name) => !/^x_[A-Z][A-Za-z0-9]*$/.test(name))
      .map((name) => `${name} has no rules here; a custom column begins with x_`),
    ...(columns.join() === [...expected, ...custom].join() ? [] : ['columns are repeated or in another order']),
    ...(new Set(custom).size === custom.length ? [] : ['a custom column is repeated']),
  ];
}

function cellFaults(columns: readonly string[], row: FocusRow): string[] {
  return SPECIFICATION.filter(({ name }) => columns.includes(name)).flatMap(({ name, type, nulls }) => {
    const value = row[name] ?? null;
    if (value === null) return nulls ? [] : [`${name} is null`];
    if (!FORMATS[type].test(value)) return [`${name} is not a ${type}: ${value}`];
    return ALLOWED[name]?.test(value) === false ? [`${name} has a value that is not allowed: ${value}`] : [];
  });
}

/** Of each pair, the first column is null where the second is null. */
const REQUIRED = [
  ...[['PricingUnit', 'PricingQuantity'] as const, ['PricingQuantity', 'PricingUnit'] as const],
  ...[['ConsumedUnit', 'ConsumedQuantity'] as const, ['ConsumedQuantity', 'ConsumedUnit'] as const],
  ...[['SkuMeter', 'SkuId'] as const, ['SkuPriceDetails', 'SkuPriceId'] as const],
  ...[['ResourceName', 'ResourceId'] as const, ['ResourceType', 'ResourceId'] as const],
  ...[['ResourceId', 'ResourceType'] as const],
  ...[['SubAccountId', 'SubAccountName'] as const, ['SubAccountName', 'SubAccountId'] as const],
];

/** What columns of one row say about each other. */
function rowFaults(row: FocusRow): string[] {
  const text = (name: string) => row[name] ?? '';
  const isUsage = row.ChargeCategory === 'Usage';
  const needed = isUsage ? ['ConsumedQuantity', 'SkuId', 'SkuPriceId'] : [];
  if (isUsage && row.ChargeClass !== 'Correction') needed.push('PricingQuantity');
  const rules: readonly (readonly [holds: boolean, fault: string])[] = [
    ...needed.map((name) => [text(name) !== '', `usage without ${name}`] as const),
    ...REQUIRED.map(([name, other]) => [text(name) === '' || text(other) !== '', `${name} without ${other}`] as const),
    [isUsage || text('ConsumedQuantity') === '', 'ConsumedQuantity of what is no usage'],
    [row.ChargeCategory !== 'Purchase' || row.ChargeFrequency !== 'Usage-Based', 'a purchase that is Usage-Based'],
    [
      SUBCATEGORIES[text('ServiceCategory')]?.includes(text('ServiceSubcategory')) ?? false,
      'a foreign ServiceSubcategory',
    ],
    [text('ChargePeriodStart') < text('ChargePeriodEnd'), 'a ChargePeriod that does not end after its start'],
    [text('BillingPeriodStart') <= text('ChargePeriodStart'), 'a charge before its BillingPeriod'],
    [text('ChargePeriodEnd') <= text('BillingPeriodEnd'), 'a charge after its BillingPeriod'],
    // There is no unit price, no discount, and nothing bought in advance that would be amortized.
    ...['ListCost', 'ContractedCost', 'EffectiveCost'].map(
      (name) => [row[name] === row.BilledCost, `${name} that is not BilledCost`] as const,
    ),
  ];
  return rules.filter(([holds]) => !holds).map(([, fault]) => fault);
}

/** Of each pair, rows with the same first value have the same second value. */
const DETERMINED = [
  ...[['ServiceName', 'ServiceCategory'] as const, ['ServiceName', 'ServiceSubcategory'] as const],
  ...[['SkuPriceId', 'SkuId'] as const, ['SkuId', 'SkuMeter'] as const, ['SkuId', 'PricingUnit'] as const],
  ...[['ResourceId', 'ResourceName'] as const, ['ResourceId', 'ResourceType'] as const],
  ...[['BillingAccountId', 'BillingAccountName'] as const, ['SubAccountId', 'SubAccountName'] as const],
];

/** What rows say about each other. */
function setFaults(rows: readonly FocusRow[]): string[] {
  const distinct = (names: readonly string[]) =>
    new Set(rows.map((row) => JSON.stringify(names.map((name) => row[name])))).size;
  const faults = DETERMINED.flatMap(([key, value]) =>
    distinct([key]) === distinct([key, value]) ? [] : [`a ${key} has several ${value}`],
  );
  const isEach = distinct(['ChargePeriodStart', 'ResourceId', 'SkuId']) === rows.length;
  return isEach ? faults : [...faults, 'a resource, SKU and period is there twice'];
}

/** The sum of a column of decimals, exact. */
export function sumOf(rows: readonly FocusRow[], column: string): string {
  return sumDecimals(rows.map((row) => decimalText(row[column] ?? '')));
}
