/**
 * A change that connections, of this or another process of the relay, must be notified of. A hint
 * names the devices that were valid in its transaction, so a device removed earlier gets no hint of
 * a later change even if the notice of its removal was lost.
 */
export type Notice =
  /** `message.timeline.changed` to the account's currently valid devices. */
  | {
      readonly kind: 'timeline';
      readonly account: string;
      readonly head: number;
      readonly deviceIds: readonly string[];
    }
  /** `device.state.changed` to the account's devices that are valid under the new state. */
  | {
      readonly kind: 'device-state';
      readonly account: string;
      readonly revision: number;
      readonly deviceIds: readonly string[];
    }
  /**
   * Ends the sessions of these devices at once, with their pushes and subscriptions. Published after
   * `revokeSessions` of `sessions/` in the transaction that removed the devices.
   */
  | { readonly kind: 'revoked'; readonly account: string; readonly deviceIds: readonly string[] }
  /**
   * Ends the sessions of this device at `expiresAt` at the latest. Published after `capSessions` of
   * `sessions/` in the transaction that shortened the certificate.
   */
  | {
      readonly kind: 'capped';
      readonly account: string;
      readonly deviceId: string;
      readonly expiresAt: number;
    }
  /** Ends these sessions of an account at once: newer ones took their room (02 §5). */
  | { readonly kind: 'ended'; readonly account: string; readonly sessionIds: readonly string[] }
  /**
   * `group.timeline.changed` to connections that subscribed to the group and may read it now. A
   * subscriber confirmed before `accessEnded`, the sequence of the last event that ended a right to
   * read, is confirmed again first.
   */
  | {
      readonly kind: 'group-timeline';
      readonly group: string;
      readonly head: number;
      readonly accessEnded: number;
    }
  /** `group.application.changed` to subscribed connections of these accounts. */
  | {
      readonly kind: 'group-applications';
      readonly group: string;
      readonly accounts: readonly string[];
    }
  /** `group.member.recovery.changed` to subscribed connections of these accounts. */
  | {
      readonly kind: 'group-recoveries';
      readonly group: string;
      readonly accounts: readonly string[];
    }
  /** `channel.timeline.changed` to connections that subscribed to the channel. */
  | { readonly kind: 'channel-timeline'; readonly channel: string; readonly head: number }
  /** A process of this relay dropped another relay: its connections end at every process (07 §B5). */
  | { readonly kind: 'relay-dropped'; readonly relay: string }
  /** A process of this relay is there, or leaves; for the bus only. */
  | { readonly kind: 'process'; readonly process: string; readonly isLeaving: boolean }
  /** A process that cannot reach storage asks whether another one can, which answers. */
  | { readonly kind: 'storage-lost' }
  | { readonly kind: 'storage-reached' }
  /**
   * Notices may have been lost. Without `aggregates`, of anything: state derived from notices must be
   * read from storage. With them, of these alone: the connections that they concern must be compared
   * with storage (which sessions ended, each process reads anyway). That is published for writes that found nothing to change,
   * which may repeat one of a process that died, and for commits whose outcome was found too late.
   */
  | { readonly kind: 'gap'; readonly aggregates?: readonly string[] };
