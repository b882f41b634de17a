/** Events of the connection to the home relay. */
import type { AccountEvent } from '../../src/index.ts';

type InState<S> = Extract<AccountEvent, { readonly kind: 'connection'; readonly state: S }>;

export function isConnected(event: AccountEvent): event is InState<'connected'> {
  return event.kind === 'connection' && event.state === 'connected';
}

export function isDisconnected(event: AccountEvent): event is InState<'disconnected'> {
  return event.kind === 'connection' && event.state === 'disconnected';
}
