/** What happens to an account, for whoever shows it to a person. */
import type { MessageRow } from './messages/rows.ts';

export type AccountEvent =
  /** A message to show arrived, or one this account sent from another device. */
  | { readonly kind: 'message'; readonly message: MessageRow }
  /** Somebody asks to become a contact. */
  | { readonly kind: 'request'; readonly account: string; readonly note?: string }
  | { readonly kind: 'contact'; readonly account: string; readonly status: 'active' | 'deleted' }
  /** A record of the timeline was refused; `reason` names the rule. */
  | { readonly kind: 'refused'; readonly message: MessageRow }
  /** The same message ID came with another content: the second one was refused (04 §18.2). */
  | { readonly kind: 'conflict'; readonly from: string; readonly message_id: string }
  /** Records this device never read were lost to the relay's retention (04 §17.4). */
  | { readonly kind: 'gap'; readonly relayId: string }
  /** Live reading began or went on; `transport` says how. */
  | { readonly kind: 'connected'; readonly transport: 'websocket' | 'http' }
  /** The connection was lost; it is being rebuilt. */
  | { readonly kind: 'disconnected'; readonly error: unknown };
