import { admissionChecks } from './admission.ts';
import { handshakeChecks } from './handshake.ts';

/** The checks for which the kit is another relay (07). */
export const relayToRelayChecks = [...handshakeChecks, ...admissionChecks];
