/** A session as a call sees it: confirmed, unexpired, of this origin. */
export type Session = DeviceSession | AccountSession;

export interface DeviceSession {
  /** Under which it is stored: nobody can make its token of it. */
  readonly id: string;
  readonly mode: 'device';
  readonly account: string;
  readonly deviceId: string;
  readonly expiresAt: number;
}

export interface AccountSession {
  readonly id: string;
  readonly mode: 'account';
  readonly account: string;
  readonly expiresAt: number;
}
