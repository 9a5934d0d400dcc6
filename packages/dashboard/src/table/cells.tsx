/** What the table of groups and the chart's table have in common: amounts, and links to other views. */
import {
  type Change,
  type DecimalText,
  ENTRY_FIELD,
  enrichedDimensions,
  SEVERAL_VALUES,
} from '@meterline/catalog/plain';
import type { MouseEvent, ReactNode } from 'react';
import type { Quantity } from '../breakdown/texts.js';
import { amountText, changePercentText, differenceText, exactText, localized, valueLabel } from '../breakdown/texts.js';
import { navigate, viewHref } from '../view/address.js';
import { canDrill, drillDown, type View } from '../view/view.js';
import { MONEY_DIGITS, type Row } from './rows.js';

interface AmountProps {
  readonly amount: DecimalText;
  /** Undefined: money. */
  readonly unit: Quantity | undefined;
  readonly isExact: boolean;
  /** Digits after the point in the column's longest amount: with all digits this one takes as much room. */
  readonly room: number;
}

/** Rounded like every other amount on the page, with all digits on hover; or all digits, of which those after the usual ones are greyed. */
export function Amount({ amount, unit, isExact, room }: AmountProps) {
  const exact = exactText(amount, unit);
  if (!isExact) return <span title={exact}>{amountText(amount, unit)}</span>;
  const [digits = '', unitText] = exact.split(' ');
  const point = digits.lastIndexOf(localized('.'));
  const usual = point === -1 ? digits.length : point + 1 + (unit === undefined ? MONEY_DIGITS : 0);
  // A pseudo-element fills the room of what is missing, which may be the point too.
  const missing = (room > 0 ? 1 + room : 0) - (point === -1 ? 0 : digits.length - point);
  return (
    <>
      <span>
        {digits.slice(0, usual)}
        <span className="exact-rest" data-missing={missing > 0 ? '0'.repeat(missing) : undefined}>
          {digits.slice(usual)}
        </span>
      </span>
      {unitText && ' '}
      {unitText && <span className="unit">{unitText}</span>}
    </>
  );
}

interface ChangeTextProps {
  readonly change: Change;
  /** Undefined: money. */
  readonly unit: Quantity | undefined;
  readonly isExact: boolean;
}

/** `+$1.20 +3.4%`, with all digits on hover. */
export function ChangeText({ change, unit, isExact }: ChangeTextProps) {
  return (
    <>
      <span title={differenceText(change, unit, true)}>{differenceText(change, unit, isExact)}</span>{' '}
      <span className={`change ${change.direction}`}>{changePercentText(change)}</span>
    </>
  );
}

interface ViewLinkProps {
  readonly to: View;
  readonly title?: string;
  readonly children: ReactNode;
}

/** A real link, so that a view can be opened in another tab or its address copied. */
export function ViewLink({ to, title, children }: ViewLinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={viewHref(to)} title={title} onClick={follow}>
      {children}
    </a>
  );
}

interface GroupCellsProps {
  readonly row: Row;
  readonly view: View;
  readonly color: string | undefined;
  /** Members may not see workspaces. */
  readonly seesWorkspaces: boolean;
}

/** The cells of a row that name its group. */
export function GroupCells({ row, view, color, seesWorkspaces }: GroupCellsProps) {
  const [first = '', ...others] = row.labels;
  const beside = besideText(row, view, seesWorkspaces);
  return (
    <>
      <th scope="row">
        <span className="group-cell">
          <span className="swatch" style={color ? { background: color } : undefined} data-none={!color || undefined} />
          <span className="group-name" title={first}>
            {canDrill(view) ? <ViewLink to={drillDown(view, row.entry)}>{first}</ViewLink> : first}
          </span>
          {others.length > 0 && (
            <span className="group-more-inline" aria-hidden="true">
              {others.join(' · ')}
            </span>
          )}
          {beside !== '' && (
            <span className="beside" title={beside}>
              {beside}
            </span>
          )}
        </span>
      </th>
      {others.map((label, index) => (
        <td key={view.groupBy[index + 1]} className="group-more" title={label}>
          {label}
        </td>
      ))}
    </>
  );
}

/** What else the API says about the group. What it leaves out has several values in the group. */
function besideText({ entry }: Row, { groupBy }: View, seesWorkspaces: boolean): string {
  const texts = enrichedDimensions(groupBy).map((dimension) => {
    const field = ENTRY_FIELD[dimension];
    if (field === 'workspace' && !seesWorkspaces) return undefined;
    const value = entry[field];
    return value === undefined ? SEVERAL_VALUES[field] : valueLabel(field, value);
  });
  return texts.filter((text) => text !== undefined).join(' · ');
}
