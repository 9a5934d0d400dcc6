import { changeFrom, type DecimalText, type GroupByDimension, shareText } from '@meterline/catalog';
import type { ReactNode } from 'react';
import { type Quantity, unitPriceText } from '../breakdown/quantities.js';
import {
  amountText,
  changePercentText,
  DIMENSION_LABEL,
  differenceText,
  exactDifferenceText,
  shareOf,
} from '../breakdown/texts.js';
import { navigate } from '../view/address.js';
import type { Sort, SortColumn, View } from '../view/view.js';
import { Amount, GroupCells, roomOf } from './cells.js';
import type { Row } from './rows.js';

export interface Totals {
  readonly cost: DecimalText;
  readonly usage: DecimalText | undefined;
  /** Undefined: the groups are measured in several units. */
  readonly unit: Quantity | undefined;
  readonly previousCost: DecimalText | undefined;
}

export interface CostTableProps {
  readonly view: View;
  readonly rows: readonly Row[];
  /** Of all groups on all pages. */
  readonly totals: Totals;
  /** `4 weeks earlier`; undefined: not compared. */
  readonly distance: string | undefined;
  readonly seesWorkspaces: boolean;
  /** Opens the events behind a row; undefined where the caller may not see them. */
  readonly onExplain: ((row: Row) => void) | undefined;
  /** The colour that the chart shows a group in; undefined if it has none of its own. */
  readonly colorOf: (key: string) => string | undefined;
}

export function CostTable({ view, rows, totals, distance, seesWorkspaces, onExplain, colorOf }: CostTableProps) {
  const { isExact } = view;
  const compared = distance !== undefined;
  const showsUsage = rows.some(({ usage }) => usage !== undefined);
  const costRoom = roomOf([...rows.map(({ cost }) => cost), totals.cost], undefined);
  const usageRoom = roomOf([...rows.map(({ usage }) => usage), totals.usage], totals.unit ?? rows[0]?.unit);
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
          {showsUsage && (
            <th scope="col" className="number price-column">
              Average price
            </th>
          )}
          {compared && (
            <th scope="col" className="number">
              {distance}
            </th>
          )}
          {compared && <SortHeader {...header} column="change" label="Change" numeric />}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.key}>
            <GroupCells {...{ row, view, seesWorkspaces }} color={colorOf(row.key)} />
            <td className="number">
              <ExplainButton row={row} onExplain={onExplain}>
                <Amount amount={row.cost} unit={undefined} room={costRoom} isExact={isExact} />
              </ExplainButton>
            </td>
            <td className="share-column">
              <Share part={row.cost} whole={totals.cost} />
            </td>
            {showsUsage && <UsageCells {...row} {...{ isExact }} room={usageRoom} />}
            {compared && <ComparisonCells now={row.cost} before={row.previousCost} isExact={isExact} />}
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
            <Amount amount={totals.cost} unit={undefined} room={costRoom} isExact={isExact} />
          </td>
          <td className="share-column" />
          {showsUsage && <UsageCells {...totals} {...{ isExact }} room={usageRoom} />}
          {compared && <ComparisonCells now={totals.cost} before={totals.previousCost} isExact={isExact} />}
        </tr>
      </tfoot>
    </table>
  );
}

function groupColumns(groupBy: readonly GroupByDimension[]): string[] {
  return groupBy.length === 0 ? ['Group'] : groupBy.map((dimension) => DIMENSION_LABEL[dimension]);
}

interface ExplainButtonProps extends Pick<CostTableProps, 'onExplain'> {
  readonly row: Row;
  readonly children: ReactNode;
}

/** Why does it say that? */
function ExplainButton({ row, onExplain, children }: ExplainButtonProps) {
  if (!onExplain) return children;
  return (
    <button
      type="button"
      className="explain"
      aria-haspopup="dialog"
      aria-label={`${amountText(row.cost, undefined)}: events behind ${row.labels.join(', ')}`}
      onClick={() => onExplain(row)}
    >
      {children}
    </button>
  );
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

interface UsageCellsProps {
  readonly cost: DecimalText;
  readonly usage: DecimalText | undefined;
  readonly unit: Quantity | undefined;
  readonly room: number;
  readonly isExact: boolean;
}

/** Quantity and price: their product is the cost. */
function UsageCells({ cost, usage, unit, room, isExact }: UsageCellsProps) {
  if (usage === undefined || unit === undefined) {
    return (
      <>
        <td className="number">–</td>
        <td className="number price-column">–</td>
      </>
    );
  }
  return (
    <>
      <td className="number">
        <Amount {...{ unit, room, isExact }} amount={usage} />
      </td>
      <td className="number price-column">{unitPriceText(cost, usage, unit) ?? '–'}</td>
    </>
  );
}

interface ComparisonCellsProps {
  readonly now: DecimalText;
  readonly before: DecimalText | undefined;
  readonly isExact: boolean;
}

function ComparisonCells({ now, before, isExact }: ComparisonCellsProps) {
  if (before === undefined) {
    return (
      <>
        <td className="number">…</td>
        <td className="number">…</td>
      </>
    );
  }
  const change = changeFrom(before, now);
  const exact = exactDifferenceText(change, undefined);
  return (
    <>
      <td className="number">
        <Amount amount={before} unit={undefined} room={roomOf([before], undefined)} isExact={isExact} />
      </td>
      <td className="number">
        <span title={exact}>{isExact ? exact : differenceText(change, undefined)}</span>{' '}
        <span className={`change ${change.direction}`}>{changePercentText(change)}</span>
      </td>
    </>
  );
}
