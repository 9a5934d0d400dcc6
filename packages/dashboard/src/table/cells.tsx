/** Renders the cells that the tables of the page share: amounts, changes, groups, and links to other views. */
import {
  type Change,
  type DecimalText,
  ENTRY_FIELD,
  enrichedDimensions,
  SEVERAL_VALUES,
} from '@meterline/catalog/plain';
import type { MouseEvent, ReactNode } from 'react';
import type { Quantity } from '../format/texts.js';
import { amountText, changePercentText, differenceText, exactText, toneOf, valueLabel } from '../format/texts.js';
import { navigate, viewHref } from '../view/address.js';
import { canDrill, drillDown, type View } from '../view/view.js';
import type { Row } from './rows.js';

interface AmountProps {
  readonly amount: DecimalText;
  /** The unit of usage, or undefined if the amount is money. */
  readonly unit: Quantity | undefined;
  readonly isExact: boolean;
}

/** A rounded amount that shows every digit on hover. */
export function Amount({ amount, unit, isExact }: AmountProps) {
  const exact = exactText(amount, unit);
  return <span title={exact}>{isExact ? exact : amountText(amount, unit)}</span>;
}

interface ChangeTextProps extends Omit<AmountProps, 'amount'> {
  readonly change: Change;
}

/** Renders a change such as `+$1.20 +3.4%`. Shows every digit on hover. */
export function ChangeText({ change, unit, isExact }: ChangeTextProps) {
  return (
    <>
      <span title={differenceText(change, unit, true)}>{differenceText(change, unit, isExact)}</span>{' '}
      <span className={`change ${toneOf(change)}`}>{changePercentText(change)}</span>
    </>
  );
}

/** A link to a view. The user can also copy it, or open it in another tab. */
export function ViewLink({ to, children }: { readonly to: View; readonly children: ReactNode }) {
  const follow = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={viewHref(to)} onClick={follow}>
      {children}
    </a>
  );
}

interface GroupCellsProps {
  readonly row: Row;
  readonly view: View;
  readonly color: string | undefined;
  readonly seesWorkspaces: boolean;
}

export function GroupCells({ row, view, color, seesWorkspaces }: GroupCellsProps) {
  const [first = '', ...others] = row.labels;
  const detail = detailText(row, view, seesWorkspaces);
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
          {detail !== '' && (
            <span className="detail" title={detail}>
              {detail}
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

/** Returns other properties of the group. If a group has several values of a property, the API omits the property. */
function detailText({ entry }: Row, { groupBy }: View, seesWorkspaces: boolean): string {
  const texts = enrichedDimensions(groupBy).map((dimension) => {
    const field = ENTRY_FIELD[dimension];
    if (field === 'workspace' && !seesWorkspaces) return undefined;
    const value = entry[field];
    return value === undefined ? SEVERAL_VALUES[field] : valueLabel(field, value);
  });
  return texts.filter((text) => text !== undefined).join(' · ');
}
