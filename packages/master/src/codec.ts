import { assert, type Bytes } from '@remora/base';
import {
  decodeNodeDescriptor,
  decodeRangeDescriptor,
  encodeNodeDescriptor,
  encodeRangeDescriptor,
} from '@remora/protocol';
import { Packr } from 'msgpackr';
import type { MasterCommand, MasterImage } from './state.ts';

/** Log entries and checkpoints of the master, each with a format number in front. */
const FORMAT = 1;
const REGISTER_NODE = 1;
const BOOTSTRAP_RANGE = 2;
const packr = new Packr({ useRecords: false });

export function encodeMasterCommand(command: MasterCommand): Buffer {
  switch (command.type) {
    case 'registerNode':
      return packr.pack([FORMAT, REGISTER_NODE, encodeNodeDescriptor(command.descriptor)]);
    case 'bootstrapRange':
      return packr.pack([FORMAT, BOOTSTRAP_RANGE, command.nodeIds]);
  }
}

export function decodeMasterCommand(bytes: Bytes): MasterCommand {
  const [format, type, body] = packr.unpack(bytes) as [number, number, unknown];
  assert(format === FORMAT, `a master command has format ${format}; this version reads ${FORMAT}`);
  if (type === REGISTER_NODE) return { type: 'registerNode', descriptor: decodeNodeDescriptor(body) };
  assert(type === BOOTSTRAP_RANGE, `a master command has the unknown type ${type}`);
  return { type: 'bootstrapRange', nodeIds: body as number[] };
}

export function encodeMasterImage(image: MasterImage): Buffer {
  const { applied, conf } = image;
  return packr.pack([
    FORMAT,
    [applied.index, applied.term],
    [conf.voters, conf.votersOutgoing, conf.learners, conf.learnersNext, conf.autoLeave],
    [image.nextNodeId, image.nextRangeId, image.nextReplicaId],
    image.nodes.map(encodeNodeDescriptor),
    image.ranges.map(encodeRangeDescriptor),
  ]);
}

export function decodeMasterImage(bytes: Bytes): MasterImage {
  const [format, applied, conf, next, nodes, ranges] = packr.unpack(bytes) as [
    number,
    [number, number],
    [number[], number[], number[], number[], boolean],
    [number, number, number],
    unknown[],
    unknown[],
  ];
  assert(format === FORMAT, `the master's state has format ${format}; this version reads ${FORMAT}`);
  const [voters, votersOutgoing, learners, learnersNext, autoLeave] = conf;
  return {
    applied: { index: applied[0], term: applied[1] },
    conf: { voters, votersOutgoing, learners, learnersNext, autoLeave },
    nextNodeId: next[0],
    nextRangeId: next[1],
    nextReplicaId: next[2],
    nodes: nodes.map(decodeNodeDescriptor),
    ranges: ranges.map(decodeRangeDescriptor),
  };
}
