// Troupe: what a training program includes.
//
// Brings the graph (training_graph, model, datasets, optimizers, schedules, further actors) and `run`, which
// makes a program of it. Link `troupe::run`. First program: docs/guide/first-program.md.
#pragma once

#include "actors/graph/training_graph.hpp"
#include "cli/run/run.hpp"
