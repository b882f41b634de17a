import type { Network } from '@posthouse/protocol';

/** libp2p protocol ID of the relay DHT (07 §B2). */
export const dhtProtocol = ({ word }: Network): string => `/${word}/kad/1.0.0`;

/** libp2p protocol ID with which a relay asks others to dial it; Posthouse's own (07 §B2). */
export const doctorProtocol = ({ word }: Network): string => `/${word}/posthouse-doctor/1.0.0`;

/** libp2p protocol ID of relay RPC (07 §B2). */
export const rpcProtocol = ({ word }: Network): string => `/${word}/relay/1.0.0`;
