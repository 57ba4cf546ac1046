SELECT turn(:turns);
