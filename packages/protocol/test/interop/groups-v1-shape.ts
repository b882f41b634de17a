/** Shape of `groups-v1.json`. */
import type { DeviceCertificate, ErrorCode, GroupEvent } from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';

export interface Step {
  event: GroupEvent;
  signing_input_utf8_hex?: string;
  hash_input_canonical_json?: string;
  hash_input_utf8_hex?: string;
  management_hash?: string;
  management_head_hash_before_and_after?: string;
  expected_removed_accounts?: string[];
  expected_projection: JsonObject;
}

export interface Actor {
  label: string;
  account_private_key: string;
  signing_private_key: string;
  certificate: DeviceCertificate;
  device_id: string;
  member_encryption_public_key: string;
}

type SignedObject = JsonObject & {
  $type: string;
  device_signature: string;
  account: string;
};

export interface ManagementChain {
  actors: Actor[];
  relay_id: string;
  nonce: string;
  group_id: string;
  initial_client_group_secret: string;
  rotated_client_group_secret: string;
  member_requests: {
    label: string;
    actor: string;
    request: SignedObject;
    signing_input_utf8_hex: string;
  }[];
  chain: Step[];
  automatic_rotation: { event: GroupEvent; management_head_hash_before_and_after: string };
  sync_response: { events: GroupEvent[]; certificates: DeviceCertificate[]; has_more: boolean };
  hash_metadata_exclusion: {
    original: GroupEvent;
    changed_metadata: GroupEvent;
    expected_hash: string;
  };
  rejection_cases: { name: string; mutation: string }[];
  sync_certificate_cases: {
    name: string;
    empty_page?: boolean;
    certificate_actors: string[];
    invalidate_device_signature_of?: string;
    expected_certificate_set_valid: boolean;
  }[];
  signer_account_binding: {
    event_index: number;
    expected_management_hash: string;
    cases: {
      name: string;
      certificate: DeviceCertificate;
      signer_device_id: string;
      expected_signature_valid: boolean;
      expected_accepted: boolean;
    }[];
  };
  member_request_account_binding: {
    requests: { name: string; request: SignedObject; signing_input_utf8_hex: string }[];
    cases: {
      name: string;
      certificate_source: string;
      session_account: string;
      request_account?: string;
      expected_signature_valid: boolean;
      expected_account_binding_valid: boolean;
    }[];
  };
  concurrency: {
    starting_hash: string;
    first: GroupEvent;
    conflicting: GroupEvent;
    retry: GroupEvent;
    retry_expected_hash: string;
  };
  same_value_updates: {
    starting_event_index: number;
    starting_hash: string;
    cases: {
      name: string;
      event: GroupEvent;
      expected_hash: string;
      expected_projection: JsonObject;
    }[];
  };
  ownership_round_trip: {
    starting_event_index: number;
    starting_hash: string;
    steps: Step[];
    replay_event: GroupEvent;
    expected_replay_error: ErrorCode;
  };
  ban_transitions: {
    starting_event_index: number;
    starting_hash: string;
    starting_key_epoch: number;
    cases: { name: string; steps: Step[] }[];
  };
  visibility: {
    timeline: { sequence: number; kind: string; retained: boolean }[];
    cases: { name: string; intervals: [number, number | null][]; expected_sequences: number[] }[];
  };
}

export interface Message {
  name: string;
  actor: string;
  starting_event_index: number;
  plaintext: JsonObject & { nickname: string | null };
  plaintext_utf8_hex: string;
  message_aad_utf8_hex: string;
  signing_input_utf8_hex: string;
  event: GroupEvent;
  expected_sender_account: string;
  expected_business_valid: boolean | null;
  management_head_hash_before_and_after: string;
  message_nonce: string;
  message_key: string;
}

export type Names = Record<string, string>;

export type Local = Record<string, { nickname: string | null; sequence: number }>;

export interface LocalStep {
  message?: string;
  key_available?: boolean;
  profile_update?: Names;
  prune_messages?: boolean;
  clear_local_data?: boolean;
  member_leave?: string;
  member_join?: string;
  sequence?: number;
  management_event_index?: number;
  expected_result: string;
  expected_local_nicknames: Local;
  example_display_names: Names;
}

interface LocalCase {
  name: string;
  group_id: string;
  receiver: string;
  receiver_membership_start: number;
  sender_membership_starts: Record<string, number>;
  account_profile_display_names: Names;
  steps: LocalStep[];
  expected_initial_local_nicknames: Local;
  example_initial_display_names: Names;
}

interface Nicknames {
  additional_device: {
    actor: string;
    signing_key_source: string;
    certificate_source: string;
    device_id: string;
  };
  epoch_inputs: {
    epoch: number;
    client_group_secret: string;
    relay_epoch_secret: string;
    client_secret_commitment: string;
    epoch_application_secret: string;
  }[];
  messages: Message[];
  field_cases: { name: string; omit?: boolean; value?: unknown; expected_valid: boolean }[];
  authentication_cases: {
    name: string;
    message: string;
    mutation?: string;
    certificate_source?: string;
    expected_signature_valid: boolean;
    expected_aead_valid: boolean;
  }[];
  local_cases: LocalCase[];
  retry_cases: {
    name: string;
    message: string;
    intervening?: string;
    retry?: string;
    mutation?: string;
    retry_envelope?: JsonObject;
    signing_input_utf8_hex?: string;
    expected_sequence?: number;
    expected_new_event?: boolean;
    expected_nickname?: string;
    expected_error?: string;
  }[];
  management_preservation: {
    name: string;
    starting_event_index: number;
    nickname_message: string;
    steps: Step[];
    expected_local_nickname: { account: string; nickname: string; sequence: number };
  }[];
  history_omission: {
    omitted_sequence: number;
    expected_management_head: string;
    expected_local_nicknames: Local;
  };
}

export interface Groups {
  network_context: string;
  group_id: {
    id: string;
    operation: string;
    input: { nonce: string; creator: string; relay_id: string };
    expected: Record<string, string>;
  };
  keying: {
    input: Record<string, string> & {
      epoch: number;
      message_created_at: number;
      message_content: JsonObject;
    };
    expected: Record<string, string> & {
      client_secret_box: JsonObject;
      relay_secret_box: JsonObject;
      message: JsonObject;
    };
  };
  management_chain: ManagementChain;
  encrypted_nicknames: Nicknames;
}
