/** Notices: what the connections of every process of this relay must be notified of. */

/**
 * What other connections, here or at another process of this relay, must hear. Hints name the
 * devices they are for, as the transaction saw them that made the notice: whoever was removed
 * before cannot hear of what came after, whichever notices were lost on the way.
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
   * Sessions of these devices end at once, with their pushes and subscriptions. Who sends it ended
   * them with `revokeSessions` of `auth/` in the transaction that removed the devices.
   */
  | { readonly kind: 'revoked'; readonly account: string; readonly deviceIds: readonly string[] }
  /**
   * Sessions of this device end at `expiresAt` at the latest. Who sends it shortened them with
   * `capSessions` of `auth/` in the transaction that shortened the certificate.
   */
  | {
      readonly kind: 'capped';
      readonly account: string;
      readonly deviceId: string;
      readonly expiresAt: number;
    }
  /**
   * `group.timeline.changed` to connections that subscribed the group and may read it now. Who was
   * confirmed before `accessEnded`, the sequence of the last event that ended somebody's right to
   * read, is looked up again first.
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
  /** `channel.timeline.changed` to connections that subscribed the channel. */
  | { readonly kind: 'channel-timeline'; readonly channel: string; readonly head: number }
  /** Notices may have been lost: what was learned from them must be looked up in storage. */
  | { readonly kind: 'gap' };
