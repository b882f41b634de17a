/** The mutations that `rejection_cases` describes in words, by name. */
import {
  groupRecordSignatures,
  verifyGroupApplication,
  verifyGroupMemberRecoveryRequest,
} from '../../src/index.ts';
import { codeOf } from './groups-v1-chain-state.ts';
import {
  accountOf,
  approve,
  batch,
  body,
  certificateOfB,
  event,
  inNetwork,
  type Rejection,
  replay,
  request,
  zeroSignature,
} from './groups-v1-mutations.ts';
import { stateRejections } from './groups-v1-state-rejections.ts';

/** Mutations of objects, of the chain's order and of who may write. */
const objectRejections: Readonly<Record<string, Rejection>> = {
  member_public_key_tampering: {
    code: 'invalid_signature',
    run: (chain) => {
      const changed = { member_encryption_public_key: chain.player('C').key };
      const object = { ...request(chain, 'B_application'), ...changed };
      const { certificate } = chain.player('B');
      return codeOf(() => verifyGroupApplication(chain.network, object, certificate));
    },
  },
  recovery_public_key_tampering: {
    code: 'invalid_signature',
    run: (chain) => {
      const changed = { member_encryption_public_key: chain.player('A').key };
      const object = { ...request(chain, 'C_recovery'), ...changed };
      const { certificate } = chain.player('C');
      return codeOf(() => verifyGroupMemberRecoveryRequest(chain.network, object, certificate));
    },
  },
  wrong_request_account: {
    code: 'bad_request',
    run: (chain) => {
      const record = request(chain, 'B_application');
      const { certificate } = chain.player('B');
      const signed = { record, account: accountOf(chain, 'C'), certificate };
      return codeOf(() => groupRecordSignatures(chain.network, signed));
    },
  },
  wrong_group: {
    code: 'invalid_signature',
    run: (chain) => {
      const object = { ...request(chain, 'B_application'), group_id: 'grp_omoOs3VZ9io_Z1h4RtztSA' };
      const { certificate } = chain.player('B');
      return codeOf(() => verifyGroupApplication(chain.network, object, certificate));
    },
  },
  wrong_network: {
    // The accounts name the magic, so structure already tells.
    code: 'bad_request',
    run: (chain) => {
      const { magic, registry } = chain.network;
      return inNetwork(chain, `neo:${Number(magic) + 1}:${registry}`);
    },
  },
  wrong_registry: {
    code: 'invalid_signature',
    run: (chain) => inNetwork(chain, `neo:${chain.network.magic}:0x${'0'.repeat(40)}`),
  },
  forged_account_certificate: {
    code: 'invalid_signature',
    run: (chain) => certificateOfB(chain, { account_signature: zeroSignature }),
  },
  replaced_device_signing_key: {
    code: 'invalid_signature',
    run: (chain) => {
      const { signing_public_key } = chain.player('C').certificate;
      return certificateOfB(chain, { signing_public_key });
    },
  },
  modified_certificate_account: {
    code: 'bad_request',
    run: (chain) => certificateOfB(chain, { account: accountOf(chain, 'C') }),
  },
  modified_prev_hash: {
    code: 'invalid_signature',
    run: (chain) => {
      const changed = event(chain, 2);
      Object.assign(changed.payload, { prev_hash: chain.data.chain[0]?.management_hash });
      return chain.refuse(chain.after(1), changed);
    },
  },
  resigned_wrong_previous_hash: {
    code: 'state_conflict',
    run: (chain) => {
      const prev_hash = chain.data.chain[0]?.management_hash;
      return chain.refuse(chain.after(1), chain.resigned(event(chain, 2), 'A', { prev_hash }));
    },
  },
  unexpected_creation_prev_hash: {
    code: 'bad_request',
    run: (chain) => {
      const creation = chain.resigned(event(chain, 0), 'A', { prev_hash: null });
      const other = chain.resigned(event(chain, 0), 'A', { prev_hash: chain.after(0).head });
      return [creation, other].map((each) => codeOf(() => chain.apply(undefined, each)));
    },
  },
  creation_after_initialization: {
    code: 'state_conflict',
    run: (chain) => chain.refuse(chain.after(0), { ...event(chain, 0), sequence: 1 }),
  },
  deleted_management_event: {
    // B is no administrator without the event that is missing.
    code: 'forbidden',
    run: (chain) => replay(chain, [0, 1, 3]) ?? [],
  },
  reordered_management_events: {
    code: 'state_conflict',
    run: (chain) => replay(chain, [0, 2, 1]) ?? [],
  },
  duplicate_management_event: {
    code: 'state_conflict',
    run: (chain) => replay(chain, [0, 1, 1]) ?? [],
  },
  member_forges_admin_result: { code: 'forbidden', run: (chain) => approve(chain, 'B', 1, 'C') },
  banned_admin: { code: 'forbidden', run: batch('member.removal', 'B', 6, ['C']) },
  former_owner: {
    code: 'forbidden',
    run: (chain) => {
      const group = chain.after(12);
      const update = body(chain, 'update', { name: 'Mine again' });
      return chain.refuse(group, chain.event(group, 'A', update));
    },
  },
  admin_removes_owner: { code: 'forbidden', run: batch('member.removal', 'B', 2, ['A']) },
  unknown_management_type: {
    code: 'invalid_state',
    run: (chain) => {
      const group = chain.after(2);
      return chain.refuse(group, chain.event(group, 'A', body(chain, 'future_update', {})));
    },
  },
  extension_tampering: {
    code: 'invalid_signature',
    run: (chain) => {
      const changed = event(chain, 9);
      Object.assign(changed.payload, { future_data: { note: 'changed', values: [0, 1] } });
      return chain.refuse(chain.after(8), changed);
    },
  },
  wrong_actor_device: {
    code: 'invalid_signature',
    run: (chain) => {
      const signer_device_id = chain.player('B').deviceId;
      return chain.refuse(chain.after(0), { ...event(chain, 1), signer_device_id });
    },
  },
};

export const rejections: Readonly<Record<string, Rejection>> = {
  ...objectRejections,
  ...stateRejections,
};
