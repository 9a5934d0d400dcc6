/** What the table of groups and the chart's table have in common: exact amounts, and links to other views. */
import { type DecimalText, grouped } from '@meterline/catalog';
import type { MouseEvent, ReactNode } from 'react';
import { navigate, viewHref } from '../view/address.js';
import type { View } from '../view/view.js';

interface ExactAmountProps {
  readonly amount: DecimalText;
  /** Digits after the point that are always written: 2 for money. */
  readonly least: number;
  /** Digits after the point in the column's longest amount: this one takes as much room. */
  readonly room: number;
  readonly symbol?: string;
}

/** All digits; those after the usual ones are greyed, and a pseudo-element fills the room of missing ones. */
export function ExactAmount({ amount, least, room, symbol = '' }: ExactAmountProps) {
  const [integer = '', fraction = ''] = grouped(amount).split('.');
  const sign = integer.startsWith('-') ? '−' : '';
  const usual = fraction.slice(0, least).padEnd(least, '0');
  const rest = fraction.slice(least);
  const missing = room - usual.length - rest.length + (usual.length + rest.length === 0 && room > 0 ? 1 : 0);
  return (
    <span>
      {sign}
      {symbol}
      {integer.replace('-', '')}
      {(usual || rest) && '.'}
      {usual}
      <span className="exact-rest" data-missing={missing > 0 ? '0'.repeat(missing) : undefined}>
        {rest}
      </span>
    </span>
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
