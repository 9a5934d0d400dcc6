import {
  type DecimalText,
  ENTRY_FIELD,
  enrichedDimensions,
  type GroupByDimension,
  UNIT_NAME,
  type Unit,
} from '@meterline/catalog';
import {
  amountText,
  changeFrom,
  changePercentText,
  DIMENSION_LABEL,
  differenceText,
  shareOf,
  shareText,
  valueLabel,
} from '../breakdown/texts.js';
import { navigate } from '../view/address.js';
import { canDrill, drillDown, type Sort, type SortColumn, type View } from '../view/view.js';
import { ExactAmount, ViewLink } from './cells.js';
import { longestFraction, type Row } from './rows.js';

export interface Totals {
  readonly cost: DecimalText;
  readonly usage: DecimalText | undefined;
  /** Undefined: the groups are measured in several units. */
  readonly unit: Unit | undefined;
  readonly previousCost: DecimalText | undefined;
}

export interface CostTableProps {
  readonly view: View;
  readonly rows: readonly Row[];
  /** Of all groups on all pages. */
  readonly totals: Totals;
  /** The colour that the chart shows a group in; undefined if it has none of its own. */
  readonly colorOf: (key: string) => string | undefined;
}

const MONEY_DIGITS = 2;

export function CostTable({ view, rows, totals, colorOf }: CostTableProps) {
  const compared = totals.previousCost !== undefined;
  const showsUsage = rows.some(({ usage }) => usage !== undefined);
  const costRoom = longestFraction([...rows.map(({ cost }) => cost), totals.cost], MONEY_DIGITS);
  const usageRoom = longestFraction([...rows.map(({ usage }) => usage), totals.usage], 0);
  const header = { sort: view.sort, onSort: (sort: Sort) => navigate({ ...view, sort, page: 1 }) };
  return (
    <table>
      <thead>
        <tr>
          {groupColumns(view.groupBy).map((label, index) =>
            index === 0 ? (
              <SortHeader key={label} {...header} column="name" label={label} />
            ) : (
              <th key={label} scope="col" className="group-more">
                {label}
              </th>
            ),
          )}
          <SortHeader {...header} column="cost" label="Cost (USD)" numeric />
          <th scope="col" className="share-column">
            Share
          </th>
          {showsUsage && <SortHeader {...header} column="usage" label="Usage" numeric />}
          {compared && (
            <th scope="col" className="number">
              Period before
            </th>
          )}
          {compared && <SortHeader {...header} column="change" label="Change" numeric />}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.key}>
            <GroupCells row={row} view={view} color={colorOf(row.key)} />
            <td className="number">
              <ExactAmount amount={row.cost} least={MONEY_DIGITS} room={costRoom} symbol="$" />
            </td>
            <td className="share-column">
              <Share part={row.cost} whole={totals.cost} />
            </td>
            {showsUsage && <UsageCell usage={row.usage} unit={row.unit} room={usageRoom} />}
            {compared && <ComparisonCells now={row.cost} before={row.previousCost} />}
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">Total of all groups</th>
          {view.groupBy.slice(1).map((dimension) => (
            <td key={dimension} className="group-more" />
          ))}
          <td className="number">
            <ExactAmount amount={totals.cost} least={MONEY_DIGITS} room={costRoom} symbol="$" />
          </td>
          <td className="share-column" />
          {showsUsage && <UsageCell usage={totals.unit && totals.usage} unit={totals.unit} room={usageRoom} />}
          {compared && <ComparisonCells now={totals.cost} before={totals.previousCost} />}
        </tr>
      </tfoot>
    </table>
  );
}

function groupColumns(groupBy: readonly GroupByDimension[]): string[] {
  return groupBy.length === 0 ? ['Group'] : groupBy.map((dimension) => DIMENSION_LABEL[dimension]);
}

interface SortHeaderProps {
  readonly column: SortColumn;
  readonly label: string;
  readonly numeric?: boolean;
  readonly sort: Sort;
  readonly onSort: (sort: Sort) => void;
}

function SortHeader({ column, label, numeric = false, sort, onSort }: SortHeaderProps) {
  const isSorted = sort.column === column;
  const order = isSorted ? (sort.descending ? 'descending' : 'ascending') : 'none';
  // The first click sorts names from A, and amounts from the largest.
  const next = { column, descending: isSorted ? !sort.descending : numeric };
  return (
    <th scope="col" className={numeric ? 'number' : undefined} aria-sort={order}>
      <button type="button" className="sort" data-order={order} onClick={() => onSort(next)}>
        {label}
      </button>
    </th>
  );
}

interface GroupCellsProps {
  readonly row: Row;
  readonly view: View;
  readonly color: string | undefined;
}

function GroupCells({ row, view, color }: GroupCellsProps) {
  const [first = '', ...others] = row.labels;
  const beside = enrichedDimensions(view.groupBy)
    .map((dimension) => ENTRY_FIELD[dimension])
    .flatMap((field) => (row.values[field] === undefined ? [] : valueLabel(field, row.values[field])));
  return (
    <>
      <th scope="row">
        <span className="group-cell">
          <span className="swatch" style={color ? { background: color } : undefined} data-none={!color || undefined} />
          {canDrill(view) ? (
            <ViewLink to={drillDown(view, row.values)} title={`Break down ${first}`}>
              {first}
            </ViewLink>
          ) : (
            <span>{first}</span>
          )}
          {others.length > 0 && (
            <span className="group-more-inline" aria-hidden="true">
              {others.join(' · ')}
            </span>
          )}
          {beside.length > 0 && <span className="beside">{beside.join(' · ')}</span>}
        </span>
      </th>
      {others.map((label, index) => (
        <td key={view.groupBy[index + 1]} className="group-more">
          {label}
        </td>
      ))}
    </>
  );
}

function Share({ part, whole }: { readonly part: DecimalText; readonly whole: DecimalText }) {
  return (
    <span className="share">
      <span className="share-bar" aria-hidden="true">
        <span style={{ width: `${shareOf(part, whole) * 100}%` }} />
      </span>
      <span className="share-text">{shareText(part, whole)}</span>
    </span>
  );
}

interface UsageCellProps {
  readonly usage: DecimalText | undefined;
  readonly unit: Unit | undefined;
  readonly room: number;
}

function UsageCell({ usage, unit, room }: UsageCellProps) {
  if (usage === undefined || unit === undefined) return <td className="number">–</td>;
  return (
    <td className="number">
      <ExactAmount amount={usage} least={0} room={room} /> <span className="unit">{UNIT_NAME[unit]}</span>
    </td>
  );
}

function ComparisonCells({ now, before }: { readonly now: DecimalText; readonly before: DecimalText | undefined }) {
  if (before === undefined) {
    return (
      <>
        <td className="number">…</td>
        <td className="number">…</td>
      </>
    );
  }
  const change = changeFrom(before, now);
  return (
    <>
      <td className="number">{amountText(before, undefined)}</td>
      <td className="number">
        {differenceText(change, undefined)}{' '}
        <span className={`change ${change.direction}`}>{changePercentText(change)}</span>
      </td>
    </>
  );
}
